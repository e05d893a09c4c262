"""Values that a program promises not to change."""

from __future__ import annotations

import operator
from typing import Any, TypeVar

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
        return getattr(object.__getattribute__(self, "_value"), name)

    def __setattr__(self, name: str, value: object) -> None:
        setattr(object.__getattribute__(self, "_value"), name, value)

    def __delattr__(self, name: str) -> None:
        delattr(object.__getattribute__(self, "_value"), name)

    def __hash__(self) -> int:
        return hash(self._value)

    def __bool__(self) -> bool:
        return bool(self._value)

    def __repr__(self) -> str:
        return repr(self._value)

    def __str__(self) -> str:
        return str(self._value)

    def __format__(self, spec: str) -> str:
        return format(self._value, spec)

    def __int__(self) -> int:
        return int(self._value)

    def __float__(self) -> float:
        return float(self._value)

    def __complex__(self) -> complex:
        return complex(self._value)

    def __index__(self) -> int:
        return operator.index(self._value)

    def __len__(self) -> int:
        return len(self._value)

    def __iter__(self) -> Any:
        return iter(self._value)

    def __contains__(self, item: object) -> bool:
        return item in self._value

    def __getitem__(self, index: Any) -> Any:
        return self._value[index]

    def __call__(self, *positional: Any, **named: Any) -> Any:
        return self._value(*positional, **named)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        import numpy as np

        return np.array(self._value, dtype, copy=copy)

    def __reduce__(self) -> Any:
        return invariant, (self._value,)


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
        found = _classes[kind] = type(f"_Invariant_{kind.__name__}", (_Invariant,), {})
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
