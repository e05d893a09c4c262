"""Compiled kernels of this process, and loading the same in another before it forks workers.

What a process has loaded before a fork, its forks share; what each of them loads for itself takes
each some ten megabytes.
"""

from __future__ import annotations

import contextlib
import importlib
import sys
from typing import Any, NamedTuple

import llvmlite.binding
from numba.core.dispatcher import Dispatcher

_libraries: list[str] = []


class LoadedKernels(NamedTuple):
    """Everything that is compiled for the CPU in a process, by names."""

    libraries: list[str]
    """Files of libraries that kernels call by symbols."""
    modules: list[str]
    functions: list[tuple[str, str, list[tuple[Any, ...]]]]
    """Module and name of each function, and the types that it is compiled for."""


def know_symbols(path: str) -> None:
    """Let all that is compiled or loaded from here on call functions of a library."""
    llvmlite.binding.load_library_permanently(path)
    if path not in _libraries:
        _libraries.append(path)


def loaded_kernels() -> LoadedKernels:
    """Return the kernels that this process has loaded."""
    modules = {
        name: module
        for name, module in list(sys.modules.items())
        if name.startswith("headrace.kernels.") and ".gpu" not in name
    }
    functions = [
        (name, attribute, list(value.signatures))
        for name, module in modules.items()
        for attribute, value in list(vars(module).items())
        if _is_compiled_at_calls(value) and value.signatures
        if value.py_func.__module__ == name  # once, where others import it
    ]
    return LoadedKernels(list(_libraries), sorted(modules), functions)


def _is_compiled_at_calls(value: Any) -> bool:
    """Return True for a kernel; one of a single signature is loaded with its module."""
    return isinstance(value, Dispatcher) and bool(getattr(value, "_can_compile", False))


def load_kernels(kernels: LoadedKernels) -> None:
    """Load kernels that another process has; one that cannot be loaded is left out."""
    for path in kernels.libraries:
        with contextlib.suppress(RuntimeError):
            know_symbols(path)
    for name in kernels.modules:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    for module, name, signatures in kernels.functions:
        function: Any = getattr(sys.modules.get(module), name, None)
        if _is_compiled_at_calls(function):
            for signature in signatures:
                # Of any kind: the worker that needs it meets the same error, and says so.
                with contextlib.suppress(Exception):
                    function.compile(signature)
