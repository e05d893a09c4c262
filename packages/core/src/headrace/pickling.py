"""Pickling of functions that a new process could not import: lambdas, local functions, notebooks'.

Python pickles functions and classes by their names, which says nothing to a process that was
started anew where they are not at the top of a module. Such functions and classes travel by value
here: cloudpickle packs their code and what they refer to.
"""

from __future__ import annotations

import functools
import io
import pickle
import sys
import types
from collections.abc import Callable
from typing import Any, TypeVar

from headrace._code_pickler import code_pickler
from headrace.errors import ArgumentTypeError, ArgumentValueError

_F = TypeVar("_F", bound=Callable[..., Any])
_MARK = "_headrace_pickle_by_value"


def pickle_by_value(fun: _F) -> _F:
    """Mark a function, so that sources that refer to it take its code along to worker processes.

    For functions at the top of a module that the workers cannot import. Lambdas, local functions
    and classes, and those of notebooks need no mark.
    """
    if not isinstance(fun, types.FunctionType):
        raise ArgumentTypeError(
            f"Only functions can be pickled by value, got a {type(fun).__name__}."
        )
    setattr(fun, _MARK, True)
    return fun


class Pickler:
    """Packs sources for processes that are started anew, and unpacks them there."""

    def __init__(self, given: Any = None) -> None:
        parts = list(given) if isinstance(given, (tuple, list)) else [given]
        module, for_dumps, for_loads, *more = parts + [None] * (3 - len(parts))
        usable = hasattr(module, "dumps") and hasattr(module, "loads")
        if more or (given is not None and not usable):
            raise ArgumentValueError(
                f"`py_callback_pickler` is {given!r}; it must be a module or an object with the "
                "functions `dumps` and `loads`, or a tuple of it and keyword arguments for each."
            )
        self._dumps = dumps if given is None else module.dumps
        self._loads = pickle.loads if given is None else module.loads
        self._for_dumps = dict(for_dumps or {})
        self._for_loads = dict(for_loads or {})

    def dumps(self, value: Any) -> bytes:
        """`value` as bytes."""
        packed: bytes = self._dumps(value, **self._for_dumps)
        return packed

    @property
    def loads(self) -> tuple[Callable[..., Any], dict[str, Any]]:
        """The function that turns the bytes back, and its keyword arguments."""
        return self._loads, self._for_loads


def dumps(value: Any) -> bytes:
    """`value` as bytes, functions and classes by value where they have to be."""
    buffer = io.BytesIO()
    try:
        _by_value()(buffer, protocol=pickle.HIGHEST_PROTOCOL).dump(value)
    except Exception as error:
        raise ArgumentTypeError(
            f"The `source` {value!r} of a parallel external source cannot be pickled, which it has "
            f"to be for workers that are started anew: {error}. Let it make what cannot be pickled "
            'when it is first called, use py_start_method="fork", or parallel="threads".'
        ) from error
    return buffer.getvalue()


class _DaliPickle:
    """Default pickler of sources, under the name that programs know."""

    dumps = staticmethod(dumps)
    loads = staticmethod(pickle.loads)


@functools.cache
def _by_value() -> type[pickle.Pickler]:
    """The pickler of cloudpickle, with the marks of users."""

    class ByValue(code_pickler()):  # type: ignore[misc]
        def reducer_override(self, value: Any) -> Any:
            """Return how to pickle `value`, or `NotImplemented` to pickle it by name."""
            if isinstance(value, types.FunctionType) and hasattr(value, _MARK):
                return super().reducer_override(_copied(value))  # which no module has
            if isinstance(value, (types.FunctionType, type)) and _is_in_main_file(value):
                return NotImplemented
            return super().reducer_override(value)

    return ByValue


def _is_in_main_file(value: Any) -> bool:
    """Return True if workers find `value` in the main module, which they import if it is a file.

    cloudpickle takes everything in the main module by value, with all it refers to.
    """
    found: Any = sys.modules["__main__"]
    if value.__module__ != "__main__" or not hasattr(found, "__file__"):
        return False
    for name in value.__qualname__.split("."):
        found = getattr(found, name, None)
    return found is value


def _copied(function: types.FunctionType) -> types.FunctionType:
    copy = types.FunctionType(
        function.__code__,
        function.__globals__,
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )
    for name in ("__annotations__", "__doc__", "__kwdefaults__", "__module__", "__qualname__"):
        setattr(copy, name, getattr(function, name))
    copy.__dict__.update(function.__dict__)
    return copy
