"""Types of arguments: how a constant and how one sample's tensor become the value an operator
reads.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from headrace.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    ConversionError,
    SampleArgumentError,
)
from headrace.kernels.cpu.philox_state import SEED_WORDS
from headrace.types import DALIDataType, DALIImageType, DALIInterpType, as_data_type
from headrace.types.arrays import to_numpy
from headrace.types.constant import constant_array
from headrace.types.enums import DALIEnum, of_dali


@dataclass(frozen=True, slots=True)
class ArgType:
    """Checks and conversions of the values of one kind of argument.

    `constant` takes what a user wrote; `sample` takes one sample of a tensor argument, a NumPy
    array. Both raise `TypeError` or `ValueError` with the reason only: who is meant is added by
    the caller.
    """

    name: str
    annotation: str
    constant: Callable[[Any], Any]
    sample: Callable[[np.ndarray], Any] | None = None
    edges: bool = False
    """True if a `DataNode` is a constant: it says which operator is meant."""
    whole: bool = False
    """True if the elements of a tensor must be integers or booleans, as fractions would be lost."""


def conversion_error(value: Any, per_sample: bool, text: str) -> ConversionError:
    """The error of a value that an argument does not take, which `text` tells of."""
    several = isinstance(value, (list, tuple)) or bool(getattr(value, "ndim", 0))
    return (SampleArgumentError if per_sample and several else ConversionError)(text)


def _not(value: Any, expected: str) -> ArgumentTypeError:
    if isinstance(value, np.ndarray):
        return ArgumentTypeError(
            f"expected {expected}; an array of shape {value.shape} cannot be converted to it"
        )
    return ArgumentTypeError(f"expected {expected}, got {value!r} of type {type(value).__name__}")


def _unwrap(value: Any) -> Any:
    """Constants of `types.Constant` and 0-d or 1-element arrays count as their number."""
    inner = getattr(value, "value", None)
    if inner is not None and type(value).__name__ == "ScalarConstant":
        return inner
    value = to_numpy(value)
    if isinstance(value, np.ndarray) and value.size == 1:
        return value.reshape(-1)[0]
    return value


def _whole(value: Any) -> int | None:
    """The whole number that `value` is, if any."""
    if isinstance(value, (numbers.Integral, np.bool_)):
        return int(value)
    if isinstance(value, numbers.Real) and float(value).is_integer():
        return int(float(value))
    return None


def _int(value: Any) -> int:
    value = _unwrap(value)
    number = _whole(value)
    if number is None:
        raise _not(value, "an integer")
    return number


def _float(value: Any) -> float:
    value = _unwrap(value)
    if isinstance(value, (numbers.Real, np.bool_)):
        try:
            return float(value)
        except OverflowError:
            raise ArgumentValueError("the number is too large for a float") from None
    raise _not(value, "a number")


def _bool(value: Any) -> bool:
    value = _unwrap(value)
    if isinstance(value, (numbers.Real, np.bool_)):
        return bool(value)
    raise _not(value, "a boolean")


def _str(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return value.decode()
    if hasattr(value, "__fspath__"):
        return str(value.__fspath__())
    raise _not(value, "a string")


def _vector(item: Callable[[Any], Any], expected: str) -> Callable[[Any], tuple[Any, ...]]:
    def convert(value: Any) -> tuple[Any, ...]:
        value = to_numpy(value)
        if isinstance(value, np.ndarray):
            return tuple(item(v) for v in value.reshape(-1))
        if isinstance(value, (str, bytes)) or not isinstance(value, Sequence):
            try:
                return (item(value),)
            except TypeError:
                raise _not(value, expected) from None
        return tuple(item(v) for v in value)

    return convert


def _member(value: Any) -> int | None:
    """The number that stands for a member of an enumeration, if `value` is one."""
    value = _unwrap(value)
    return None if isinstance(value, (bool, np.bool_)) else _whole(value)


def _data_type(value: Any) -> DALIDataType:
    number = _member(value)
    return as_data_type(value if number is None or isinstance(value, DALIEnum) else number)


def _enum(cls: type[DALIEnum], expected: str) -> Callable[[Any], Any]:
    members = cls.__members__

    def convert(value: Any) -> Any:
        if isinstance(value, cls):
            return value
        number = _member(value)
        if number is not None:
            try:
                return cls(number)
            except ValueError:
                raise ArgumentValueError(f"{value!r} is not a {expected}") from None
        of_another = of_dali(cls, value)
        if of_another is not None:
            return of_another
        wrong = _not(value, f"a {expected}")
        if isinstance(value, str):
            alike = [m for m in members if m.endswith(f"_{value.upper()}")]
            known = alike[:1] or members
            raise ArgumentTypeError(f"{wrong}, such as {', '.join(f'types.{m}' for m in known)}")
        raise wrong

    return convert


def _layout(value: Any) -> str:
    if isinstance(value, str):
        return value
    raise _not(value, "a layout string")


def _scalar_sample(convert: Callable[[Any], Any]) -> Callable[[np.ndarray], Any]:
    def from_sample(value: np.ndarray) -> Any:
        if value.size != 1:
            raise ArgumentValueError(
                f"expected a scalar for each sample, got shape {value.shape}; `fn.random.*`, "
                "`fn.reductions.*` and sources make such."
            )
        return convert(value.item())

    return from_sample


def _vector_sample(convert: Callable[[Any], Any]) -> Callable[[np.ndarray], Any]:
    def from_sample(value: np.ndarray) -> Any:
        return tuple(convert(v) for v in value.reshape(-1).tolist())

    return from_sample


def _array(value: Any) -> np.ndarray:
    array = np.asarray(to_numpy(value))
    if array.dtype.kind not in "biuf":
        raise _not(value, "numbers")
    return array.astype(np.float32)


def _kept(value: np.ndarray) -> np.ndarray:
    return value.astype(np.float32, copy=False)


def _state_words(value: np.ndarray) -> np.ndarray:
    """The words, uint32, that the first bytes of an array are, whatever its elements are."""
    if value.nbytes < _STATE_BYTES:
        raise ArgumentValueError(
            f"the state of a generator is too small: expected {SEED_WORDS} words of 32 bits, "
            f"{_STATE_BYTES} bytes, got {value.nbytes} bytes in an array of {value.dtype} of shape "
            f"{value.shape}"
        )
    data = np.ascontiguousarray(value).reshape(-1).view(np.uint8)[:_STATE_BYTES]
    return data.copy().view(np.uint32)


def _state(value: Any) -> np.ndarray | None:
    array = to_numpy(value)
    if isinstance(_unwrap(array), numbers.Integral):
        return None  # stands for no state in DALI, too
    if not isinstance(array, np.ndarray):
        raise _not(value, f"an array of {SEED_WORDS} words of 32 bits")
    return _state_words(constant_array(array))


_STATE_BYTES = 4 * SEED_WORDS

IntArg = ArgType("int", "int", _int, _scalar_sample(int), whole=True)
FloatArg = ArgType("float", "float", _float, _scalar_sample(float))
BoolArg = ArgType("bool", "bool", _bool, _scalar_sample(bool), whole=True)
StringArg = ArgType("str", "str", _str)
IntListArg = ArgType(
    "int or list of int",
    "int | Sequence[int]",
    _vector(_int, "integers"),
    _vector_sample(int),
    whole=True,
)
FloatListArg = ArgType(
    "float or list of float",
    "float | Sequence[float]",
    _vector(_float, "numbers"),
    _vector_sample(float),
)
StringListArg = ArgType("str or list of str", "str | Sequence[str]", _vector(_str, "strings"))
PathArg = ArgType("str", "str | PathLike[str]", _str)
PathListArg = ArgType(
    "str or list of str",
    "str | PathLike[str] | Sequence[str | PathLike[str]]",
    _vector(_str, "strings"),
)
DataTypeArg = ArgType("DALIDataType", "DataTypeLike", _data_type)
DataTypeListArg = ArgType(
    "list of DALIDataType",
    "DataTypeLike | Sequence[DataTypeLike]",
    lambda given: tuple(map(_data_type, given if isinstance(given, (list, tuple)) else (given,))),
)
"""An element type, of the library or of any framework; see `types.as_data_type`."""
ImageTypeArg = ArgType(
    "DALIImageType", "DALIImageType", _enum(DALIImageType, "types.DALIImageType")
)
InterpTypeArg = ArgType(
    "DALIInterpType",
    "DALIInterpType",
    _enum(DALIInterpType, "types.DALIInterpType"),
    _scalar_sample(lambda value: DALIInterpType(int(value))),
    whole=True,
)
LayoutArg = ArgType("layout", "str", _layout)
ArrayArg = ArgType("float or nested list of float", "TensorLike", _array, _kept)
"""A tensor of any rank, kept as a float32 array."""
FrameFloatArg = ArgType("float", "float", _float, _kept)
FrameFloatListArg = ArgType(
    "float or list of float", "float | Sequence[float]", FloatListArg.constant, _kept
)
"""Of operators that look at all frames at once: a tensor is kept as a float32 array, whose first
axis may be frames."""
RandomStateArg = ArgType("state of a generator", "TensorLike", _state, _state_words)
"""The first bytes of an array, of any type, as the words that `DrawSeed` is made of."""
ObjectArg = ArgType("object", "object", lambda value: value)
