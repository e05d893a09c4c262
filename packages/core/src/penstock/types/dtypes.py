"""Element types: what NumPy and other libraries call them, and which kind each one is."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.errors import ArgumentTypeError, UnknownNameError
from penstock.types.enums import DALIDataType

NUMPY_OF: dict[DALIDataType, type[np.generic]] = {
    DALIDataType.UINT8: np.uint8,
    DALIDataType.UINT16: np.uint16,
    DALIDataType.UINT32: np.uint32,
    DALIDataType.UINT64: np.uint64,
    DALIDataType.INT8: np.int8,
    DALIDataType.INT16: np.int16,
    DALIDataType.INT32: np.int32,
    DALIDataType.INT64: np.int64,
    DALIDataType.FLOAT16: np.float16,
    DALIDataType.FLOAT: np.float32,
    DALIDataType.FLOAT64: np.float64,
    DALIDataType.BOOL: np.bool_,
}
"""NumPy type of the element types that hold a number or a truth value."""

DALI_OF_NUMPY: dict[np.dtype[Any], DALIDataType] = {np.dtype(n): d for d, n in NUMPY_OF.items()}
"""Element type of a `numpy.dtype` in native byte order. The inverse of `NUMPY_OF`."""

ENUM_TYPES = frozenset((DALIDataType.IMAGE_TYPE, DALIDataType.DATA_TYPE, DALIDataType.INTERP_TYPE))
"""Element types whose elements are members of an enumeration, kept as int32."""

_INT32 = np.dtype(np.int32)
_INTEGERS = frozenset(DALIDataType(i) for i in range(DALIDataType.UINT8, DALIDataType.INT64 + 1))
_FLOATS = frozenset((DALIDataType.FLOAT16, DALIDataType.FLOAT, DALIDataType.FLOAT64))

# What types are called in Python, NumPy and PyTorch. `float` is the 32-bit one.
_BY_NAME: dict[str, DALIDataType] = {
    "bool": DALIDataType.BOOL,
    "bool_": DALIDataType.BOOL,
    "boolean": DALIDataType.BOOL,
    "int8": DALIDataType.INT8,
    "sbyte": DALIDataType.INT8,
    "uint8": DALIDataType.UINT8,
    "byte": DALIDataType.UINT8,
    "ubyte": DALIDataType.UINT8,
    "int16": DALIDataType.INT16,
    "short": DALIDataType.INT16,
    "uint16": DALIDataType.UINT16,
    "ushort": DALIDataType.UINT16,
    "int32": DALIDataType.INT32,
    "uint32": DALIDataType.UINT32,
    "int64": DALIDataType.INT64,
    "long": DALIDataType.INT64,
    "uint64": DALIDataType.UINT64,
    "ulong": DALIDataType.UINT64,
    "half": DALIDataType.FLOAT16,
    "float16": DALIDataType.FLOAT16,
    "float": DALIDataType.FLOAT,
    "float32": DALIDataType.FLOAT,
    "float64": DALIDataType.FLOAT64,
    "double": DALIDataType.FLOAT64,
}


def to_numpy_type(dali_type: DALIDataType) -> type:
    """NumPy scalar type of `dali_type`.

    Raises
    ------
    UnknownNameError
        If NumPy has no such type: only numbers and truth values have one.
    """
    try:
        return NUMPY_OF[dali_type]
    except (KeyError, TypeError):
        raise UnknownNameError(
            f"{dali_type!r} has no NumPy type; "
            f"those that have one are {', '.join(t.name for t in NUMPY_OF)}."
        ) from None


def storage_dtype(dali_type: DALIDataType) -> np.dtype[Any]:
    """How elements of `dali_type` lie in memory: as `to_numpy_type`, enumerations as int32."""
    found = _STORED.get(dali_type)
    if found is None:
        found = _INT32 if dali_type in ENUM_TYPES else np.dtype(to_numpy_type(dali_type))
        _STORED[dali_type] = found
    return found


_STORED: dict[DALIDataType, np.dtype[Any]] = {}


def is_stored(dali_type: DALIDataType) -> bool:
    """Whether tensors can have elements of `dali_type`."""
    return dali_type in NUMPY_OF or dali_type in ENUM_TYPES


def to_dali_type(framework_type: Any) -> DALIDataType:
    """Element type that NumPy, PyTorch or Python call `framework_type`.

    Parameters
    ----------
    framework_type
        A NumPy type or dtype, a PyTorch dtype, the Python types ``bool`` and ``float`` (the
        latter is `types.FLOAT`), or the name of any of them. Python's ``int`` has no fixed width.

    Raises
    ------
    ArgumentTypeError
        If there is no such element type.
    """
    if isinstance(framework_type, type):
        name = framework_type.__qualname__
    else:
        name = str(framework_type)
    found = _BY_NAME.get(name.removeprefix("torch."))
    if found is None:
        raise ArgumentTypeError(
            f"{framework_type!r} is not the name of an element type; "
            f"those known are {', '.join(sorted(_BY_NAME))}."
        )
    return found


def is_integer(dtype: DALIDataType) -> bool:
    """Whether `dtype` is one of the eight integer types."""
    return dtype in _INTEGERS


def is_float(dtype: DALIDataType) -> bool:
    """Whether `dtype` is one of the three floating-point types."""
    return dtype in _FLOATS


def is_bool(dtype: DALIDataType) -> bool:
    """Whether `dtype` is `types.BOOL`."""
    return dtype == DALIDataType.BOOL


def is_enum_type(dtype: DALIDataType) -> bool:
    """Whether elements of `dtype` are members of an enumeration."""
    return dtype in ENUM_TYPES
