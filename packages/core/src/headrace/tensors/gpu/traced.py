"""Calls that recordings note: functions that fill arrays out of arrays."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, NamedTuple, TypeVar

_Function = TypeVar("_Function", bound=Callable[..., Any])
_tracing = threading.local()


class TracedCall(NamedTuple):
    """A call with its arguments, and what it returned."""

    function: Callable[..., Any]
    args: tuple[Any, ...]
    result: Any


class HasRaw:
    """A stand-in for an array, `raw`: see `headrace.tensors.gpu.tracked`."""

    __slots__ = ("raw",)

    raw: Any


def raw_of(value: Any) -> Any:
    """The array that `value` stands for; any other value as it is."""
    return value.raw if isinstance(value, HasRaw) else value


def note_call(function: Callable[..., Any], args: tuple[Any, ...], result: Any) -> None:
    """Note a call, if calls are noted."""
    noted = getattr(_tracing, "noted", None)
    if noted is not None:
        noted.append(TracedCall(function, args, result))


def traced(function: _Function) -> _Function:
    """`function`, whose calls are noted where a recording asks for it.

    It fills arrays, arguments of its own, out of other arrays and numbers; called once more, with
    other elements in those, it fills them anew, and returns the same. Compiled code calls the
    function itself.
    """

    @wraps(function)
    def call(*args: Any) -> Any:
        noted = getattr(_tracing, "noted", None)
        if noted is None:
            return function(*args)
        args = tuple(map(raw_of, args))
        result = function(*args)
        noted.append(TracedCall(function, args, result))
        return result

    return call  # type: ignore[return-value]


@contextmanager
def tracing(noted: list[Any]) -> Iterator[None]:
    """Note the calls of this thread in a list."""
    _tracing.noted = noted
    try:
        yield
    finally:
        _tracing.noted = None
