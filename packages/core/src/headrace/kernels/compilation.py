"""Loops compiled by Numba at their first call, and kept on disk by the library's own rules.

Numba's own cache raises where it finds no folder to write to, and takes code for fresh as long as
the file of a function is unchanged, whatever became of the files it calls. Here the version of the
library counts too, and `headrace.kernel_cache` decides on folders.
"""

from __future__ import annotations

import hashlib
import inspect
import pickle
import re
import sys
import threading
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numba
from numba.core import event, sigutils, typeinfer
from numba.core.caching import _Cache
from numba.core.ccallback import CFunc
from numba.core.compiler import CompileResult
from numba.core.errors import NumbaWarning
from numba.core.serialize import dumps

from headrace import kernel_cache
from headrace._forking import no_fork
from headrace._version import __version__
from headrace.compilation_notice import compiling
from headrace.kernel_claims import Claim, claim
from headrace.kernels import ahead
from headrace.kernels.compilation_within import Within, set_environments

_DIGEST_BYTES = 32


def njit(*, signature: Any = None, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Decorate a function to be compiled by `numba.njit` and kept on disk."""

    def decorate(function: Callable[..., Any]) -> Any:
        dispatcher = numba.njit(**options)(function)
        if dispatcher is function:  # NUMBA_DISABLE_JIT
            return function
        within = Within(dispatcher)
        dispatcher.get_call_template = within.get_call_template
        dispatcher.get_overload = within.get_overload
        dispatcher._cache = KernelCache(function, options, dispatcher)
        if signature is not None:
            with typeinfer.register_dispatcher(dispatcher):
                dispatcher.compile(signature)
            dispatcher.disable_compile()
        return dispatcher

    return decorate


def cfunc(signature: Any, function: Any) -> Any:
    """The function, compiled to be called from C and kept on disk, as by `numba.cfunc`."""
    callback: Any = _CFunction(
        function, sigutils.normalize_signature(signature), locals={}, options={}
    )
    callback._cache = KernelCache(function, {})
    callback.compile()
    return callback


class _CFunction(CFunc):  # type: ignore[misc]
    """A function to be called from C; users are told where compiling it takes long."""

    _pyfunc: Any
    _cache: KernelCache

    def _compile_uncached(self) -> Any:
        compiling.begin(self._pyfunc.__name__.strip("_"))
        try:
            return super()._compile_uncached()  # type: ignore[misc]
        except BaseException:
            self._cache.release()  # there is nothing to be saved
            raise
        finally:
            compiling.__exit__()


_ROOT = Path(__file__).parents[2]
_IMPORT = re.compile(rb"^[ \t]*from (headrace\.kernels[\w.]*) import (\([^)]*\)|.+)$", re.MULTILINE)
"""Imports of other files with compiled functions, and with what these take for constants."""


@cache
def _stamp(source: str) -> bytes:
    """Stamp of everything that compiled code of this file depends on: if any of it changes, the
    code is stale.
    """
    files = [Path(source)]
    for path in files:
        files += sorted(_imported(path).difference(files))
    texts = b"\n".join(map(_text, sorted(files)))
    return f"{__version__} {numba.__version__}\n".encode() + hashlib.sha256(texts).digest()


@cache
def _text(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:  # in an archive; the version tells
        return b""


@cache
def _imported(path: Path) -> frozenset[Path]:
    """Files with kernels that a file imports."""
    found: set[Path] = set()
    for module, names in _IMPORT.findall(_text(path)):
        base = _ROOT.joinpath(*module.decode().split("."))
        parts = re.findall(r"\w+", names.decode())
        places = [base.with_suffix(".py"), *(base / f"{n}.py" for n in ("__init__", *parts))]
        found.update(place for place in places if place.is_file())
    return frozenset(found)


class KernelCache(_Cache):  # type: ignore[misc]
    """Takes the place of Numba's cache of one function.

    A file holds one signature: a digest of `_stamp` and of what follows, and what follows is
    Numba's pickled result.
    """

    def __init__(
        self, function: Callable[..., Any], options: dict[str, Any], dispatcher: Any = None
    ) -> None:
        self._function = function
        self._dispatcher = dispatcher
        self._options = options
        self._source = inspect.getfile(function)
        self._claim: Claim | None = None
        """Lock that other processes wait for while this one compiles."""

    @property
    def cache_path(self) -> str:
        """The folder that is looked into first."""
        return str(self._folders()[0])

    def load_overload(self, signature: Any, target_context: Any) -> CompileResult | None:
        """The code kept for these types, if it is there, whole, and of the present sources.

        Where another process compiles it, that is waited for; where none does, this one has claimed
        it until `save_overload`.
        """
        target_context.refresh()
        name = self._file_name(signature, target_context.codegen())
        found = self._found(name, target_context)
        if found is None and self._dispatcher is not None:
            found = ahead.find(self._dispatcher, signature)
            if found is not None:
                self._save(signature, found)
        if found is None:
            self.release()
            self._claim, had_to_wait = claim(name, self._folders())
            if had_to_wait:
                found = self._found(name, target_context)
                if found is not None:
                    self.release()
        return found

    def release(self) -> None:
        """Let other processes compile what this one has not."""
        if self._claim is not None:
            self._claim.release()
            self._claim = None

    def _found(self, name: str, target_context: Any) -> CompileResult | None:
        content = kernel_cache.find(name, self._folders())
        if content is None:
            return None
        digest, data = content[:_DIGEST_BYTES], content[_DIGEST_BYTES:]
        if digest != self._digest(data):
            return None
        return CompileResult._rebuild(target_context, *pickle.loads(data))

    def save_overload(self, signature: Any, result: CompileResult) -> None:
        """Keep the code for these types."""
        set_environments(result)
        try:
            self._save(signature, result)
        finally:
            self.release()

    def _save(self, signature: Any, result: CompileResult) -> None:
        if result.library.has_dynamic_globals or any(not o.can_cache for o in result.lifted):
            name = self._function.__qualname__
            warnings.warn(f"The code of {name} cannot be kept.", NumbaWarning, stacklevel=2)
            return
        data = dumps(result._reduce())
        name = self._file_name(signature, result.codegen)
        kernel_cache.keep(name, self._digest(data) + data, self._folders())

    def enable(self) -> None:
        """Nothing to do: it is always enabled."""

    def disable(self) -> None:
        """Nothing to do: it is always enabled."""

    def flush(self) -> None:
        """Nothing to do: stale files are noticed, and written over."""

    def _folders(self) -> list[Path]:
        chosen = numba.config.CACHE_DIR
        beside = Path(self._source).parent / "__pycache__"
        return kernel_cache.folders(Path(chosen) if chosen else beside)

    def _digest(self, data: bytes) -> bytes:
        return hashlib.sha256(_stamp(self._source) + data).digest()

    def _file_name(self, signature: Any, codegen: Any) -> str:
        """Name of the file for a signature: the same for the same place in the sources.

        What is made of an older text of the same function is written over, not left behind.
        """
        function, code = self._function, self._function.__code__
        cells = tuple(cell.cell_contents for cell in function.__closure__ or ())
        key = hashlib.sha256()
        for part in (
            self._source,
            str(code.co_firstlineno),
            sys.implementation.cache_tag,
            getattr(sys, "abiflags", ""),
            str(signature),
            str(codegen.magic_tuple()),
            repr(sorted(self._options.items())),
        ):
            key.update(part.encode() + b"\0")
        key.update(dumps(cells) if cells else b"")
        module = Path(self._source).stem
        return f"{module}.{function.__name__}-{key.hexdigest()[:24]}.kernel"


class _Listener(event.Listener):  # type: ignore[misc]
    """Has the user told when compiling takes long, of the library's own functions only."""

    def on_start(self, started: event.Event) -> None:
        if isinstance(getattr(started.data["dispatcher"], "_cache", None), KernelCache):
            compiling.begin(started.data["dispatcher"].py_func.__name__.strip("_"))

    def on_end(self, ended: event.Event) -> None:
        if isinstance(getattr(ended.data["dispatcher"], "_cache", None), KernelCache):
            compiling.__exit__()
            # `is_failed` says the opposite, up to Numba 0.68 at least.
            if ended._exc_details is not None:  # there is nothing to be saved
                ended.data["dispatcher"]._cache.release()


class _LockListener(event.Listener):  # type: ignore[misc]
    """Has forks wait for a thread that has Numba's lock, or waits for it."""

    def __init__(self) -> None:
        self._thread = threading.local()

    def on_start(self, started: event.Event) -> None:
        no_fork.__enter__()
        self._thread.entered = getattr(self._thread, "entered", 0) + 1

    def on_end(self, ended: event.Event) -> None:
        # A thread may have taken the lock before this was registered, by another thread.
        if getattr(self._thread, "entered", 0):
            self._thread.entered -= 1
            no_fork.__exit__()


event.register("numba:compile", _Listener())
event.register("numba:compiler_lock", _LockListener())
