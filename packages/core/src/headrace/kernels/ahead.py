"""Kernels that an installation brings, so that the first program has little left to compile.

The build (`hatch_build.py`) compiles the kernels listed in ``ahead.json`` as far as that is the
same for all processors of a kind: to LLVM's code, everything taken in that a kernel calls, before
it is optimised. Where it is called first, the rest is done for the processor at hand, which takes
a fifth of the time, and kept with what was compiled there.

    python -m headrace.kernels.ahead FOLDER          compile for this Python, into FOLDER
"""

from __future__ import annotations

import base64
import hashlib
import importlib
import json
import os
import pickle
import sys
import warnings
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import llvmlite
import numba
from llvmlite import binding
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompileResult, Flags, compile_extra
from numba.core.serialize import dumps

from headrace._version import __version__
from headrace.kernels.compilation_within import Unoptimized

LISTED = Path(__file__).with_name("ahead.json")
FOLDER = Path(__file__).with_name("compiled")


class _Linked(Unoptimized):
    """Code of a kernel with that of all it calls, without what nothing uses."""

    def _finalize_dynamic_globals(self) -> None:
        JITCodeLibrary._optimize_functions(self, self._final_module)
        manager = binding.create_new_module_pass_manager()
        manager.add_global_dead_code_eliminate_pass()
        manager.run(self._final_module, self._codegen._pass_builder())
        super()._finalize_dynamic_globals()

    def serialize_using_object_code(self) -> tuple[str, str, bytes]:
        self._ensure_finalized()
        return self.name, "linked", self._final_module.as_bitcode()


@cache
def _stamp() -> bytes:
    """Digest of everything that this code depends on: a kernel takes in others, of other files."""
    digest = hashlib.sha256(f"{__version__} {numba.__version__} {llvmlite.__version__}".encode())
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.digest()


def _path(folder: Path, dispatcher: Any, arguments: tuple[Any, ...], triple: str) -> Path:
    function = dispatcher.py_func
    key = hashlib.sha256()
    for part in (
        function.__module__,
        function.__qualname__,
        str(arguments),
        repr(sorted(dispatcher.targetoptions.items())),
        triple,
        sys.implementation.cache_tag,
        getattr(sys, "abiflags", ""),
    ):
        key.update(part.encode() + b"\0")
    return folder / f"{function.__name__}-{key.hexdigest()[:24]}.kernel"


def _read(path: Path) -> bytes | None:
    """The compiled code in a file; `None` if it is missing, damaged, or of other sources."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    size = len(_stamp())
    stamp, digest, data = content[:size], content[size : 2 * size], content[2 * size :]
    return data if stamp == _stamp() and digest == hashlib.sha256(data).digest() else None


def find(dispatcher: Any, arguments: tuple[Any, ...]) -> CompileResult | None:
    """The kernel for these types of arguments, made for this processor, if the installation
    brings it.
    """
    context = dispatcher.targetctx
    codegen = context.codegen()
    data = _read(_path(FOLDER, dispatcher, arguments, codegen.magic_tuple()[0]))
    if data is None:
        return None
    (name, _, bitcode), description, environment, *rest = pickle.loads(data)
    signature, objectmode, lifted, annotation, reload_init, environments = rest
    for function in reload_init:
        function()
    library = codegen.create_library(name)
    library.enable_object_caching()
    library._final_module = binding.parse_bitcode(bitcode)
    library._optimize_final_module()
    library._finalize_final_module()
    entry = context.get_executable(library, description, environment)
    for other in environments:
        codegen.set_env(other.env_name, other)
    return CompileResult(
        target_context=context,
        typing_context=context.typing_context,
        library=library,
        environment=environment,
        entry_point=entry,
        fndesc=description,
        type_annotation=annotation,
        signature=signature,
        objectmode=objectmode,
        lifted=lifted,
        typing_error=None,
        call_helper=None,
        metadata=None,
        reload_init=reload_init,
        referenced_envs=environments,
    )


def listed() -> Iterator[tuple[Any, tuple[Any, ...]]]:
    """The kernels of the list, and the types of their arguments."""
    for entry in json.loads(LISTED.read_text()):
        kernel: Any = importlib.import_module(entry["module"])
        for name in entry["name"].split("."):
            kernel = getattr(kernel, name)
        yield kernel, pickle.loads(base64.b64decode(entry["pickled"]))


def compile_to(folder: Path) -> None:
    """Compile those kernels of the list that a folder does not have yet, and remove others."""
    folder.mkdir(parents=True, exist_ok=True)
    others = set(folder.glob("*.kernel"))
    for dispatcher, arguments in listed():
        context = dispatcher.targetctx
        path = _path(folder, dispatcher, arguments, context.codegen().magic_tuple()[0])
        others.discard(path)
        if _read(path) is not None:
            continue
        context.refresh()
        flags = Flags()
        dispatcher.targetdescr.options.parse_as_flags(flags, dispatcher.targetoptions)
        flags.no_compile = True
        library = _Linked(context.codegen(), dispatcher.py_func.__qualname__)
        result = compile_extra(
            dispatcher.typingctx,
            context,
            dispatcher.py_func,
            arguments,
            None,
            flags,
            {},
            library=library,
        )
        if library.has_dynamic_globals:
            warnings.warn(f"{dispatcher} has addresses of this process in it.", stacklevel=1)
            continue
        data = dumps(result._reduce())
        content = _stamp() + hashlib.sha256(data).digest() + data
        # Programs may read the folder of an editable install meanwhile.
        unfinished = path.with_suffix(f".{os.getpid()}")
        unfinished.write_bytes(content)
        unfinished.replace(path)
    for other in others:
        other.unlink(missing_ok=True)


if __name__ == "__main__":
    compile_to(Path(sys.argv[1]))
