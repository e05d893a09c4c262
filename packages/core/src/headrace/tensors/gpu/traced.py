"""Calls that recordings note: functions that fill arrays out of arrays."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from operator import is_, itemgetter
from typing import Any, NamedTuple, TypeVar

import numpy as np

_Function = TypeVar("_Function", bound=Callable[..., Any])
_tracing = threading.local()


class UntrackedError(Exception):
    """Something is done with a tracked array that cannot be done anew."""


class TracedCall(NamedTuple):
    """A call with its arguments, and what it returned."""

    function: Callable[..., Any]
    args: tuple[Any, ...]
    result: Any


class HasRaw:
    """A stand-in for an array, `raw`: see `headrace.tensors.gpu.tracked`."""

    __slots__ = ("raw",)

    raw: Any


class TracedResults:
    """Results of a call whose arguments are tracked: numbers, each of which may be another one in
    the next iteration, as long as the program has not read which it is.
    """

    __slots__ = ("_checks", "_does", "now")

    def __init__(self, now: tuple[Any, ...]) -> None:
        self.now = now
        """Those of the last call."""
        self._does = True
        """True if these do for what was read."""
        self._checks: list[tuple[Callable[[tuple[Any, ...]], Any], Any]] = []

    def numbers(self) -> tuple[Any, ...]:
        """The results as a program is to see them."""
        return tuple(
            [
                TracedNumber(self, itemgetter(k))
                if type(value) is int
                else self.read(itemgetter(k))
                for k, value in enumerate(self.now)
            ]
        )

    def read(self, function: Callable[[tuple[Any, ...]], Any]) -> Any:
        """Tell what a program reads of them, which is the same from here on."""
        value = function(self.now)
        self._checks.append((function, value))
        return value

    def admit(self, found: Any) -> bool:
        """Take the results of another call; return whether they do for what was read."""
        now = found if type(found) is tuple else (found,)
        if now == self.now:
            return self._does
        self.now = now
        self._does = all(function(now) == value for function, value in self._checks)
        return self._does


class TracedNumber:
    """An integer that may be another one in the next iteration.

    A comparison, or any use as a number, is what iterations have in common from here on. Memory and
    launches of so many bytes and blocks are as large as it says each time.
    """

    __slots__ = ("_function", "_results")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, results: TracedResults, function: Callable[[tuple[Any, ...]], int]) -> None:
        self._results = results
        self._function = function

    @property
    def now(self) -> int:
        """The number in this iteration, which the program must not go by."""
        return int(self._function(self._results.now))

    def _derived(self, function: Callable[[int], int], *others: Any) -> Any:
        if any(isinstance(other, TracedNumber) for other in others):
            return NotImplemented
        own = self._function
        return TracedNumber(self._results, lambda found: function(own(found)))

    def _read(self, function: Callable[[int], Any]) -> Any:
        own = self._function
        return self._results.read(lambda found: function(own(found)))

    def __int__(self) -> int:
        return int(self._read(int))

    __index__ = __int__

    def __bool__(self) -> bool:
        return bool(self._read(bool))

    def __eq__(self, other: object) -> bool:
        return bool(self._read(lambda value: value == other))

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __lt__(self, other: int) -> bool:
        return bool(self._read(lambda value: value < other))

    def __le__(self, other: int) -> bool:
        return bool(self._read(lambda value: value <= other))

    def __gt__(self, other: int) -> bool:
        return not self <= other

    def __ge__(self, other: int) -> bool:
        return not self < other

    def __neg__(self) -> TracedNumber:
        return self._derived(lambda value: -value)  # type: ignore[no-any-return]

    def __add__(self, other: int) -> TracedNumber:
        return self._derived(lambda value: value + other, other)  # type: ignore[no-any-return]

    def __mul__(self, other: int) -> TracedNumber:
        return self._derived(lambda value: value * other, other)  # type: ignore[no-any-return]

    __radd__, __rmul__ = __add__, __mul__

    def __floordiv__(self, other: int) -> TracedNumber:
        return self._derived(lambda value: value // other, other)  # type: ignore[no-any-return]


class TracedWord(NamedTuple):
    """An argument of a kernel, of a NumPy type, that is such a number."""

    kind: type[Any]
    number: TracedNumber


def raw_of(value: Any) -> Any:
    """The array that `value` stands for; any other value as it is."""
    return value.raw if isinstance(value, HasRaw) else value


def refuse_silence() -> None:
    """Raise where NumPy does not warn as it would in a replay."""
    if np.geterr() != getattr(_tracing, "warnings", np.geterr()):
        raise UntrackedError("NumPy's warnings are turned off")


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
        plain = tuple(map(raw_of, args))
        if all(map(is_, plain, args)):
            result = function(*args)
            noted.append(TracedCall(function, args, result))
            return result
        before = [(each, each.tobytes()) for each in args if _is_open(each)]
        result = function(*plain)
        if any(each.tobytes() != content for each, content in before):
            raise UntrackedError(f"`{function.__name__}` fills an array that is not tracked")
        if result is None:
            noted.append(TracedCall(function, plain, result))
            return result
        results = TracedResults(result if isinstance(result, tuple) else (result,))
        noted.append(TracedCall(function, plain, results))
        numbers = results.numbers()
        return numbers if isinstance(result, tuple) else numbers[0]

    return call  # type: ignore[return-value]


def _is_open(value: Any) -> bool:
    """True for an array whose elements a program may read: records are for kernels alone."""
    return isinstance(value, np.ndarray) and value.flags.writeable and value.dtype.names is None


def told(function: _Function) -> _Function:
    """`function` likewise, one whose result the program goes by: a replay is for iterations in
    which it is the same.
    """

    @wraps(function)
    def call(*args: Any) -> Any:
        plain = tuple(map(raw_of, args))
        result = function(*plain)
        note_call(function, plain, result)
        return result

    return call  # type: ignore[return-value]


@contextmanager
def tracing(noted: list[Any]) -> Iterator[None]:
    """Note the calls of this thread in a list."""
    _tracing.noted, _tracing.warnings = noted, np.geterr()
    try:
        yield
    finally:
        _tracing.noted = None
