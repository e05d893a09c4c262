"""Loads files with operators that users have declared: Python modules.

DALI's are compiled from C++; here an operator is declared in Python, and loops that are to be fast
are compiled by Numba. See https://github.com/headrace/headrace/blob/main/docs/operators.md
"""

from __future__ import annotations

import importlib.util
import os
import sys
import zlib
from pathlib import Path
from typing import Any

from headrace.errors import ArgumentTypeError, UsageError
from headrace.to_come import DOCUMENTS
from headrace.tracebacks import public

__all__ = ["load_directory", "load_library"]

_COMPILED = (".so", ".dll", ".dylib", ".pyd")


def __dir__() -> list[str]:
    return [*__all__]


@public
def load_library(library_path: str | os.PathLike[str], global_symbols: bool = False) -> None:
    """Load a Python file that declares operators; ``fn``, ``ops`` and dynamic mode have them then.

    Loading a file again declares its operators again.

    Parameters
    ----------
    library_path
        The file, or the folder of a package.
    global_symbols
        DALI's mode of linking compiled libraries; no effect on Python.

    Raises
    ------
    ArgumentTypeError
        If `library_path` is no path.
    UsageError
        If there is no such file, it cannot be run, or it is a compiled library.
    """
    path = _path(library_path)
    if path.suffix in _COMPILED:
        raise UsageError(
            f"Failed to load library {path}: it is compiled, for another engine. Operators of "
            f"Headrace are declared in Python: see {DOCUMENTS}/operators.md"
        )
    file = path / "__init__.py" if path.is_dir() else path
    if not file.is_file():
        raise UsageError(f"Failed to load library {path}: there is no such file.")
    number = zlib.crc32(str(file.resolve()).encode())
    name = f"headrace_library_{path.stem}_{number:08x}"
    folders = [str(path)] if path.is_dir() else None
    spec = importlib.util.spec_from_file_location(name, file, submodule_search_locations=folders)
    if spec is None or spec.loader is None:
        raise UsageError(f"Failed to load library {path}: it is no Python file.")
    module = importlib.util.module_from_spec(spec)
    before = sys.modules.get(name)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        if before is None:
            del sys.modules[name]
        else:
            sys.modules[name] = before
        raise UsageError(
            f"Failed to load library {path}: {type(error).__name__}: {error}."
        ) from error
    import cloudpickle  # type: ignore[import-untyped]

    cloudpickle.register_pickle_by_value(module)  # worker processes could not import it


@public
def load_directory(plugin_dir_path: str | os.PathLike[str], global_symbols: bool = False) -> None:
    """Load all files ``libheadrace_*.py`` in a folder and those below it, in order of their names.

    Nothing is done where there is no such folder.

    Parameters
    ----------
    plugin_dir_path
        The folder.
    global_symbols
        As of `load_library`.

    Raises
    ------
    ArgumentTypeError, UsageError
        As of `load_library`; also for libraries of DALI (``libdali_*.so``) in it.
    """
    folder = _path(plugin_dir_path)
    for pattern in ("libdali_*.so", "libheadrace_*.py"):
        for file in sorted(folder.rglob(pattern)):
            load_library(file, global_symbols)


def _path(given: Any) -> Path:
    if not isinstance(given, (str, os.PathLike)):
        raise ArgumentTypeError(f"Expected the path of a library, got {given!r}.")
    return Path(given)
