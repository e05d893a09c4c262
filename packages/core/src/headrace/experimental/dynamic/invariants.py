"""Values that a program promises not to change."""

from __future__ import annotations

import copy
import operator
from types import MethodType
from typing import Any, TypeVar

import numpy as np

T = TypeVar("T")

_UNARY = ("neg", "pos", "abs", "invert")
_BINARY = (
    "add",
    "sub",
    "mul",
    "truediv",
    "floordiv",
    "mod",
    "divmod",
    "pow",
    "matmul",
    "lshift",
    "rshift",
    "and",
    "or",
    "xor",
)
_COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
_PROTOCOLS = (
    *("repr", "str", "format", "bytes", "hash", "bool", "int", "float", "complex", "index"),
    *("round", "trunc", "floor", "ceil", "len", "length_hint", "iter", "next", "reversed"),
    *("contains", "getitem", "setitem", "delitem", "call", "enter", "exit", "instancecheck"),
    *(f"i{name}" for name in _BINARY),
)
"""Special methods that stand for those of the value, where it has them."""
_classes: dict[type, type] = {}


class _Invariant:
    """Stands for a value, and passes for an instance of its class."""

    __slots__ = ("_value",)

    def __init__(self, value: Any) -> None:
        object.__setattr__(self, "_value", value)

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return type(self._value)

    def __getattr__(self, name: str) -> Any:
        value = object.__getattribute__(self, "_value")
        found = getattr(value, name)
        if name.startswith("_"):  # what methods of the library look at is as it is
            return found
        if isinstance(found, MethodType) and found.__self__ is value:
            return MethodType(found.__func__, self)  # what it finds does not change either
        return invariant(found)

    def __setattr__(self, name: str, value: object) -> None:
        setattr(object.__getattribute__(self, "_value"), name, value)

    def __delattr__(self, name: str) -> None:
        delattr(object.__getattribute__(self, "_value"), name)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.array(self._value, dtype, copy=copy)

    def __copy__(self) -> Any:
        return copy.copy(self._value)

    def __deepcopy__(self, known: dict[int, Any]) -> Any:
        return copy.deepcopy(self._value, known)

    def __reduce__(self) -> Any:
        return plain, (self._value,)


def _delegate(name: str) -> Any:
    method = getattr(operator, f"__{name}__", None) or divmod

    def forward(self: _Invariant, *others: Any) -> Any:
        return method(self._value, *[plain(other) for other in others])

    forward.__name__ = f"__{name}__"
    return forward


def _reflect(name: str) -> Any:
    method = getattr(operator, f"__{name}__", None) or divmod

    def backward(self: _Invariant, other: Any) -> Any:
        return method(plain(other), self._value)

    backward.__name__ = f"__r{name}__"
    return backward


def _stand_for(kind: type, name: str) -> Any:
    method = getattr(kind, name)

    def call(self: _Invariant, *positional: Any, **named: Any) -> Any:
        return method(self._value, *positional, **named)

    call.__name__ = name
    return method and call  # `__hash__` of what has none is None


for _name in (*_UNARY, *_BINARY, *_COMPARISONS):
    setattr(_Invariant, f"__{_name}__", _delegate(_name))
for _name in _BINARY:
    setattr(_Invariant, f"__r{_name}__", _reflect(_name))


def invariant(value: T) -> T:
    """Declare that `value` does not change while a captured loop runs.

    Loops compare what they are given with what was noted, so that nothing depends on the promise:
    a value that changes all the same only costs the work that was done ahead.
    """
    if is_invariant(value):
        return value
    kind = type(value)
    found = _classes.get(kind)
    if found is None:
        known = {name for each in kind.__mro__ for name in vars(each)}
        members = {n: _stand_for(kind, n) for p in _PROTOCOLS if (n := f"__{p}__") in known}
        members["__doc__"] = kind.__doc__
        found = _classes[kind] = type(f"_Invariant_{kind.__name__}", (_Invariant,), members)
    return found(value)  # type: ignore[no-any-return]


def is_invariant(value: Any) -> bool:
    """True if `value` was declared not to change."""
    return issubclass(type(value), _Invariant)


def plain(value: Any) -> Any:
    """Value that an invariant `value` wraps; other values as they are."""
    return value._value if is_invariant(value) else value


def plain_inside(value: Any) -> Any:
    """The same in lists, tuples and dictionaries, which are as they are where none is in them."""
    value = plain(value)
    kind = type(value)
    if kind in (list, tuple):
        found = kind(plain_inside(each) for each in value)
        return found if any(a is not b for a, b in zip(found, value, strict=True)) else value
    if kind is dict:
        return {plain(k): plain_inside(v) for k, v in value.items()}
    return value
