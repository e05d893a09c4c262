"""Functions as they are compiled for other compiled functions, which take them in.

What calls a function of the library from compiled code has it linked, optimised and turned to
machine code as a part of its own. Numba does all of that to the function by itself, too, and makes
entries for calls from Python and from C, which costs as much as the rest.
"""

from __future__ import annotations

from typing import Any

from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompileResult, Flags, compile_extra
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import CPUDispatcher


class Unoptimized(JITCodeLibrary):  # type: ignore[misc]
    """LLVM's code of a function with all that it calls, not optimised, and no machine code."""

    def _optimize_functions(self, ll_module: Any) -> None:
        ll_module.data_layout = self._codegen._data_layout

    def finalize(self) -> None:
        """Take in what is called."""
        for library in dict.fromkeys(self._linking_libraries):
            self._reload_init.update(library._reload_init)
            self._final_module.link_in(library._get_module_for_linking(), preserve=True)
        self._finalize_dynamic_globals()
        self._finalized = True


class Within(CPUDispatcher):  # type: ignore[misc]
    """The function for compiled code that calls it, but for itself: none may be recursive."""

    def __init__(self, dispatcher: CPUDispatcher) -> None:
        super().__init__(dispatcher.py_func, targetoptions=dispatcher.targetoptions)

    @global_compiler_lock  # type: ignore[untyped-decorator]
    def compile(self, sig: Any) -> Any:
        """Key of the function for these types of arguments."""
        found = self.overloads.get(sig)
        if found is None:
            found = self._compiled(sig)._replace(entry_point=_Key())
            self.targetctx.insert_user_function(found.entry_point, found.fndesc, [found.library])
            self.overloads[sig] = found
        return found.entry_point

    def _compiled(self, arguments: tuple[Any, ...]) -> CompileResult:
        flags = Flags()
        self.targetdescr.options.parse_as_flags(flags, self.targetoptions)
        flags.no_cpython_wrapper = flags.no_cfunc_wrapper = flags.no_compile = True
        library = Unoptimized(self.targetctx.codegen(), self.py_func.__qualname__)
        library.enable_object_caching()
        return compile_extra(
            self.typingctx, self.targetctx, self.py_func, arguments, None, flags, {}, library
        )


class _Key:
    """A key to the code of a function, in place of its entry from Python."""


def set_environments(result: CompileResult) -> None:
    """Give a new function the constants of those that it has taken in."""
    result.library._ensure_finalized()
    for environment in result._find_referenced_environments():
        result.library.codegen.set_env(environment.env_name, environment)
