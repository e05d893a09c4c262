"""Data and branches without an engine: what conditions on data would be run and joined."""

from __future__ import annotations

from headrace.autograph.conversion import call
from headrace.autograph.tracing import tracing


class Data:
    """Stands for data; its text says how it came about."""

    __hash__ = None

    def __init__(self, text):
        self.text = text

    def __repr__(self):
        return self.text

    def __bool__(self):
        raise TypeError("the truth of data was asked for")

    def _binary(symbol):  # noqa: N805 - not a method
        return lambda self, other: Data(f"({self!r} {symbol} {other!r})")

    __add__, __mul__, __gt__, __lt__, __eq__ = map(_binary, ("+", "*", ">", "<", "=="))


class Recorder:
    """Branches that only note what is run."""

    def __init__(self):
        self.guard = []

    def is_data(self, value):
        return isinstance(value, Data)

    def is_constant(self, value):
        return isinstance(value, (bool, int, float))

    def guarded(self, condition, *, holds):
        return _Guard(self.guard, (repr(condition), holds))

    def merge(self, condition, if_true, if_false, name):
        return Data(f"[{condition!r} ? {if_true!r} : {if_false!r}]")

    def operand(self, value, operation, side):
        return value if isinstance(value, Data) else Data(repr(value))

    def negated(self, value):
        return Data(f"not {value!r}")


class _Guard:
    """Left by `__exit__` only: a generator would leave it when it is forgotten, too."""

    def __init__(self, guard, term):
        self.guard, self.term = guard, term

    def __enter__(self):
        self.guard.append(self.term)

    def __exit__(self, *error):
        assert self.guard.pop() is self.term


def traced(function, *args, recorder=None):
    """What `function` returns with conditions on data."""
    recorder = recorder or Recorder()
    with tracing(recorder):
        result = call(function)(*args)
    assert not recorder.guard, "all branches are left"
    return result
