"""Constants in graphs: scalars that take part in arithmetic, and the arrays of nodes."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from headrace.errors import (
    ArgumentTypeError,
    LayoutError,
    NumberOverflowError,
    ShapeError,
    UsageError,
)
from headrace.types.arrays import to_numpy
from headrace.types.dtypes import (
    DALI_OF_NUMPY,
    NUMPY_OF,
    DataTypeLike,
    is_enum_type,
    storage_dtype,
    to_dali_type,
)
from headrace.types.enums import DALIDataType, DALIEnum, DALIImageType, DALIInterpType
from headrace.types.scalar_constant import ScalarConstant, element_type

NodeMaker = Callable[..., Any]

node_maker: NodeMaker | None = None
"""Makes a graph node of an array; see `headrace.types.install_constant_node`."""

ENUM_ELEMENT = {
    DALIDataType: DALIDataType.DATA_TYPE,
    DALIImageType: DALIDataType.IMAGE_TYPE,
    DALIInterpType: DALIDataType.INTERP_TYPE,
}
# What `shape` may be for a value to still count as a scalar.
_SCALAR_SHAPES = (None, (), 1, (1,))


def Constant(
    value: Any,
    dtype: DataTypeLike | None = None,
    shape: int | Sequence[int] | None = None,
    layout: str | None = None,
    device: str | None = None,
    **kwargs: Any,
) -> Any:
    """A constant for use in a graph.

    Parameters
    ----------
    value
        A number, a member of one of the enumerations, a flat list of either, or an array of NumPy,
        PyTorch, JAX or any library that converts to NumPy's.
    dtype
        Element type, as `as_data_type` takes it. When not given, that of `value`, where 64-bit
        arrays become 32-bit ones.
    shape
        Shape of each sample. A single value fills it.
    layout
        Layout of each sample.
    device
        Device of the constant.
    **kwargs
        Arguments of the operator `fn.constant`, such as `name`.

    Returns
    -------
    ScalarConstant or DataNode
        A `ScalarConstant` for a number without `shape`, `layout`, `device` and `kwargs`, else a
        node that gives the same tensor for every sample.

    Raises
    ------
    ArgumentTypeError
        If `value` is none of the above or mixes enumerations.
    NumberOverflowError
        If an array of 64-bit integers without `dtype` does not fit into 32 bits.
    ShapeError
        If the number of values does not fit `shape`.
    """
    wanted = None if dtype is None else constant_dtype(value, dtype)
    is_enum = isinstance(value, DALIEnum) or (wanted is not None and is_enum_type(wanted))
    is_array = len(getattr(value, "shape", ())) > 0 or isinstance(value, (list, tuple))
    plain_shape = tuple(shape) if isinstance(shape, list) else shape
    if (
        device is None
        and layout is None
        and not kwargs
        and not is_enum
        and not is_array
        and plain_shape in _SCALAR_SHAPES
    ):
        return ScalarConstant(value, wanted)
    return ConstantNode(device, value, wanted, shape, layout, **kwargs)


def ConstantNode(
    device: str | None,
    value: Any,
    dtype: DataTypeLike | None,
    shape: int | Sequence[int] | None,
    layout: str | None,
    **kwargs: Any,
) -> Any:
    """A graph node that gives the same tensor for every sample. See `Constant`."""
    array = constant_array(value, dtype, shape)
    if layout and len(layout) != array.ndim:
        raise LayoutError(
            f'`layout`="{layout}" cannot describe a constant of shape {array.shape}: '
            f"it needs {array.ndim} letters."
        )
    if node_maker is None:
        raise UsageError(
            "A constant that is not a plain number is a node of a graph: make it in the definition "
            "of a pipeline."
        )
    return node_maker(array, constant_dtype(value, dtype), layout or "", device or "cpu", **kwargs)


def constant_dtype(value: Any, dtype: DataTypeLike | None = None) -> DALIDataType:
    """Element type of the constant made of `value`; see `constant_array`."""
    if dtype is not None:
        return element_type(dtype)
    if isinstance(value, ScalarConstant):
        return value.dtype
    found = getattr(value, "dtype", None)
    if found is not None:
        kind = to_dali_type(found)
        if kind == DALIDataType.FLOAT64:
            return DALIDataType.FLOAT
        if isinstance(value, (np.ndarray, np.generic)):
            narrow = {
                DALIDataType.INT64: DALIDataType.INT32,
                DALIDataType.UINT64: DALIDataType.UINT32,
            }
            return narrow.get(kind, kind)
        return kind
    values = value if isinstance(value, (list, tuple)) else [value]
    kinds = {_kind(v) for v in values}
    enums = [k for k in kinds if isinstance(k, type)]
    if enums:
        if len(kinds) > 1:
            names = sorted(k if isinstance(k, str) else k.__name__ for k in kinds)
            raise ArgumentTypeError(
                f"A constant of enumeration members holds one enumeration only, got {names}."
            )
        return ENUM_ELEMENT[enums[0]]
    if "float" in kinds or not kinds:
        return DALIDataType.FLOAT
    return DALIDataType.INT32 if "int" in kinds else DALIDataType.BOOL


def constant_array(
    value: Any,
    dtype: DataTypeLike | None = None,
    shape: int | Sequence[int] | None = None,
) -> np.ndarray:
    """The array of a constant node; enumeration members become int32.

    Numbers are rounded to the nearest (halves away from zero) and saturate where the type cannot
    hold them.

    Parameters
    ----------
    value
        See `Constant`.
    dtype
        Element type; see `Constant`.
    shape
        Shape of the result. A single value fills it; otherwise its volume must match.

    Raises
    ------
    ArgumentTypeError, NumberOverflowError, ShapeError
        See `Constant`.
    """
    target = constant_dtype(value, dtype)
    if isinstance(value, ScalarConstant):
        value = value.value
    if getattr(value, "dtype", None) is not None:
        array = np.asarray(to_numpy(value))
        if dtype is None and array.dtype.kind in "iu":
            _check_fits(array, target)
    else:
        flat = list(value) if isinstance(value, (list, tuple)) else value
        array = np.array(flat, _exact_type(flat))
    if shape is not None:
        array = _with_shape(array, (shape,) if isinstance(shape, int) else tuple(shape))
    return _convert(
        array, np.dtype(np.int32) if is_enum_type(target) else np.dtype(NUMPY_OF[target])
    )


def _kind(value: Any) -> str | type[DALIEnum]:
    if isinstance(value, DALIEnum) and type(value) in ENUM_ELEMENT:
        return type(value)
    if isinstance(value, (bool, np.bool_)):
        return "bool"
    if isinstance(value, numbers.Integral):
        return "int"
    if isinstance(value, numbers.Real):
        return "float"
    raise ArgumentTypeError(
        f"A constant is made of numbers or members of an enumeration, in a flat list or an array, "
        f"got {value!r} of type {type(value).__name__}."
    )


def _exact_type(value: Any) -> np.dtype[Any]:
    """A type that holds all of the Python numbers in `value` until they are converted."""
    values = value if isinstance(value, list) else [value]
    if any(_kind(v) == "float" for v in values):
        return np.dtype(np.float64)
    if not values:
        return np.dtype(np.float32)
    low, high = min(values), max(values)
    for dtype in (np.dtype(np.int64), np.dtype(np.uint64)):
        if np.iinfo(dtype).min <= low and high <= np.iinfo(dtype).max:
            return dtype
    raise NumberOverflowError(f"Integers from {low} to {high} do not fit into 64 bits.")


def _check_fits(array: np.ndarray, target: DALIDataType) -> None:
    if array.size == 0:
        return
    limits = np.iinfo(storage_dtype(target))
    low, high = int(array.min()), int(array.max())
    if low < limits.min or high > limits.max:
        raise NumberOverflowError(
            f"A constant array without `dtype` holds integers of 32 bits, and "
            f"{low if low < limits.min else high} is out of range for {limits.dtype}. "
            f"Pass `dtype=types.{DALI_OF_NUMPY[array.dtype].name}` to keep 64 bits."
        )


def _with_shape(array: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    volume = math.prod(shape)
    if any(extent < 0 for extent in shape):
        raise ShapeError(f"`shape` of a constant has a negative extent: {shape}.")
    if array.size == volume:
        return array.reshape(shape)
    if array.size == 1:
        return np.broadcast_to(array.reshape(()), shape)
    raise ShapeError(
        f"`shape`={shape} holds {volume} values, but the constant has {array.size}. "
        f"Give as many values as the shape holds, or a single one to fill it."
    )


def _convert(array: np.ndarray, dtype: np.dtype[Any]) -> np.ndarray:
    if array.dtype == dtype:
        return np.array(array, order="C")  # the user's array may change later
    if dtype.kind == "f":
        with np.errstate(over="ignore"):  # beyond the largest number is infinity
            return array.astype(dtype)
    if array.dtype.kind == "f":
        array = _rounded(array.astype(np.float64))
    if dtype.kind == "b":
        return np.asarray(array != 0)
    if array.dtype.kind == "b":
        return array.astype(dtype)
    return _saturated(array, dtype)


def _rounded(array: np.ndarray) -> np.ndarray:
    """Nearest whole numbers, halves away from zero."""
    whole = np.trunc(array)
    with np.errstate(invalid="ignore"):  # infinity - infinity
        up = np.abs(array - whole) >= 0.5
    return np.asarray(whole + np.where(up, np.sign(array), 0.0))


def _saturated(array: np.ndarray, dtype: np.dtype[Any]) -> np.ndarray:
    limits = np.iinfo(dtype)
    if array.dtype.kind == "f":
        result = lowest_bits(array, dtype)
        # float64 rounds the largest 64-bit integers up.
        result[array >= float(limits.max)] = limits.max
        result[array <= float(limits.min)] = limits.min
        return result
    own = np.iinfo(array.dtype)
    inside = np.clip(array, max(own.min, limits.min), min(own.max, limits.max))
    return np.asarray(inside.astype(dtype))


def lowest_bits(array: np.ndarray, dtype: np.dtype[Any]) -> np.ndarray:
    """Floats as integers, as processors of x86 convert them and so DALI: without fractions, of
    32 or 64 bits, of which `dtype` keeps the lowest; all that has no room there is their smallest.
    """
    if dtype == np.uint64:
        high = array >= 2.0**63
        signed = lowest_bits(np.where(high, array - 2.0**63, array), np.dtype(np.int64))
        return np.asarray(signed.view(dtype) ^ (high.astype(dtype) << np.uint64(63)))
    wide = np.dtype(np.int64 if dtype.itemsize == 8 or dtype == np.uint32 else np.int32)
    bound = 2.0 ** (8 * wide.itemsize - 1)
    whole = np.where((array >= -bound) & (array < bound), array, -bound)
    return whole.astype(wide).astype(dtype)
