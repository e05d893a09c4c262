"""Numbers with an element type, for arithmetic with pipeline tensors."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from headrace.errors import ArgumentTypeError, ArgumentValueError
from headrace.types.dtypes import (
    NUMPY_OF,
    DataTypeLike,
    as_data_type,
    is_bool,
    is_enum_type,
    is_float,
    is_integer,
    is_stored,
    storage_dtype,
    to_dali_type,
)
from headrace.types.enums import DALIDataType, DALIEnum


class ScalarConstant:
    """A number of a known type for arithmetic with pipeline tensors. Made by `Constant`.

    The type takes part in type promotion. The methods named after types give the same number as
    another type; they do not wrap around or saturate.

    Attributes
    ----------
    value
        The number, as a Python ``bool``, ``int`` or ``float``.
    dtype
        Its element type.
    shape
        Always ``[]``.
    """

    # Arrays on the left of an operator must leave it to the right-hand side.
    __array_ufunc__ = None

    def __init__(self, value: Any, dtype: DataTypeLike | None = None) -> None:
        self.shape: list[int] = []
        if getattr(value, "dtype", None) is not None and hasattr(value, "item"):
            if dtype is None:
                dtype = to_dali_type(value.dtype)
            value = value.item()
        if isinstance(value, DALIEnum) or not isinstance(value, (bool, int, float)):
            raise ArgumentTypeError(
                f"Expected scalar value of type 'bool', 'int' or 'float', "
                f"got {value!r} of type {type(value).__module__}.{type(value).__qualname__}."
            )
        if dtype is None:
            if isinstance(value, bool):
                dtype = DALIDataType.BOOL
            else:
                dtype = DALIDataType.INT32 if isinstance(value, int) else DALIDataType.FLOAT
        self.dtype = element_type(dtype)
        if is_enum_type(self.dtype):
            raise _not_a_number(dtype)
        self.value: builtins.bool | int | float
        if is_bool(self.dtype):
            self.value = builtins.bool(value)
        elif is_integer(self.dtype):
            self.value = int(value)
        else:
            self.value = float(value)

    @property
    def numpy_dtype(self) -> np.dtype[Any]:
        """The element type as NumPy's."""
        return storage_dtype(self.dtype)

    def bool(self) -> ScalarConstant:
        """The number as `types.BOOL`."""
        return ScalarConstant(self.value, DALIDataType.BOOL)

    def int8(self) -> ScalarConstant:
        """The number as `types.INT8`."""
        return ScalarConstant(self.value, DALIDataType.INT8)

    def int16(self) -> ScalarConstant:
        """The number as `types.INT16`."""
        return ScalarConstant(self.value, DALIDataType.INT16)

    def int32(self) -> ScalarConstant:
        """The number as `types.INT32`."""
        return ScalarConstant(self.value, DALIDataType.INT32)

    def int64(self) -> ScalarConstant:
        """The number as `types.INT64`."""
        return ScalarConstant(self.value, DALIDataType.INT64)

    def uint8(self) -> ScalarConstant:
        """The number as `types.UINT8`."""
        return ScalarConstant(self.value, DALIDataType.UINT8)

    def uint16(self) -> ScalarConstant:
        """The number as `types.UINT16`."""
        return ScalarConstant(self.value, DALIDataType.UINT16)

    def uint32(self) -> ScalarConstant:
        """The number as `types.UINT32`."""
        return ScalarConstant(self.value, DALIDataType.UINT32)

    def uint64(self) -> ScalarConstant:
        """The number as `types.UINT64`."""
        return ScalarConstant(self.value, DALIDataType.UINT64)

    def float16(self) -> ScalarConstant:
        """The number as `types.FLOAT16`."""
        return ScalarConstant(self.value, DALIDataType.FLOAT16)

    def float32(self) -> ScalarConstant:
        """The number as `types.FLOAT`."""
        return ScalarConstant(self.value, DALIDataType.FLOAT)

    def float64(self) -> ScalarConstant:
        """The number as `types.FLOAT64`."""
        return ScalarConstant(self.value, DALIDataType.FLOAT64)

    def __eq__(self, other: object) -> Any:
        if isinstance(other, ScalarConstant):
            return self.value == other.value and self.dtype == other.dtype
        return NotImplemented  # a graph node on the other side makes a comparison node

    def __ne__(self, other: object) -> Any:
        if isinstance(other, ScalarConstant):
            return not self == other
        return NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __bool__(self) -> builtins.bool:
        if is_float(self.dtype):
            raise self._needs_type("bool", "an integer or boolean type, such as `.int32()`")
        return builtins.bool(self.value)

    def __int__(self) -> int:
        if is_float(self.dtype):
            raise self._needs_type("int", "an integer or boolean type, such as `.int32()`")
        return int(self.value)

    def __float__(self) -> float:
        if not is_float(self.dtype):
            raise self._needs_type("float", "a floating-point type, such as `.float32()`")
        return float(self.value)

    def _needs_type(self, what: str, kind: str) -> ArgumentTypeError:
        return ArgumentTypeError(
            f"A ScalarConstant of type {self.dtype} is not converted to Python's `{what}` by "
            f"itself; give it {kind} first, or use `.value`."
        )

    def __str__(self) -> str:
        return f"{self.value}:{self.dtype}"

    def __repr__(self) -> str:
        return str(self.value)


def element_type(dtype: Any) -> DALIDataType:
    """Return `dtype` as one of the element types that constants can have."""
    try:
        found = as_data_type(dtype)
    except (ArgumentTypeError, ArgumentValueError) as error:
        raise ArgumentTypeError(f"`dtype` of a constant: {error}.") from None
    if is_stored(found):
        return found
    raise _not_a_number(dtype)


def _not_a_number(dtype: Any) -> ArgumentTypeError:
    return ArgumentTypeError(
        f"A constant has one of the types {', '.join(t.name for t in NUMPY_OF)}, got {dtype!r}."
    )
