"""Element types: what NumPy and other libraries call them, and which kind each one is."""

from __future__ import annotations

import numbers
from typing import Any, Protocol, TypeAlias

import numpy as np

from headrace.errors import ArgumentTypeError, ArgumentValueError, UnknownNameError
from headrace.types.enums import DALIDataType, of_dali

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

SIDE_TYPES = frozenset((DALIDataType.STRING, DALIDataType.PYTHON_OBJECT))
"""Types of side data, texts and objects, kept as bytes: `headrace.types.side_data`."""

_INT32, _UINT8 = np.dtype(np.int32), np.dtype(np.uint8)

INTEGERS = tuple(DALIDataType(i) for i in range(DALIDataType.UINT8, DALIDataType.INT64 + 1))
"""Without a sign and with one, from narrow to wide each."""
FLOATS = (DALIDataType.FLOAT16, DALIDataType.FLOAT, DALIDataType.FLOAT64)
"""From narrow to wide."""

FRAMEWORK_NAMES: dict[str, DALIDataType] = {
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
"""Names of types in Python, NumPy and PyTorch. `float` is the 32-bit one."""


class _TorchDType(Protocol):
    """Interface of `torch.dtype` for type checkers: PyTorch is not imported."""

    @property
    def is_floating_point(self) -> bool: ...

    @property
    def itemsize(self) -> int: ...


class _DynamicDType(Protocol):
    """Interface of dynamic mode's element types."""

    @property
    def type_id(self) -> DALIDataType | None: ...


DataTypeLike: TypeAlias = (
    DALIDataType
    | np.dtype[Any]
    | type[np.generic]
    | type[float]
    | type[int]
    | type[bool]
    | str
    | _TorchDType
    | _DynamicDType
)
"""Types that `as_data_type` takes, and with it every argument that is an element type."""


def as_data_type(value: Any) -> DALIDataType:
    """Element type that `value` stands for: the conversion of every ``dtype=``.

    Parameters
    ----------
    value
        A member of `types.DALIDataType` or its number; a type or dtype of NumPy, PyTorch, JAX,
        TensorFlow or dynamic mode; Python's ``bool``, ``int`` (`types.INT32`) or ``float``
        (`types.FLOAT`); or a name, such as ``"float32"`` or ``"half"``.

    Raises
    ------
    ArgumentTypeError
        If it is none of these, or a type that tensors cannot have.
    ArgumentValueError
        If it is a number that stands for no type.
    """
    if isinstance(value, DALIDataType):
        return value
    if isinstance(value, numbers.Integral) and not isinstance(value, bool):
        try:
            return DALIDataType(int(value))
        except ValueError:
            raise ArgumentValueError(f"{value!r} is not a types.DALIDataType") from None
    if value is int:
        return DALIDataType.INT32
    of_another = of_dali(DALIDataType, value)
    if of_another is not None:
        return of_another
    of_dynamic_mode = getattr(value, "type_id", None)
    if isinstance(of_dynamic_mode, DALIDataType):
        return of_dynamic_mode
    framework_type = getattr(value, "as_numpy_dtype", value)  # TensorFlow's
    if isinstance(framework_type, type) and issubclass(framework_type, np.generic):
        framework_type = np.dtype(framework_type)
    try:
        return to_dali_type(framework_type)
    except ArgumentTypeError:
        if isinstance(value, np.dtype) and not value.isnative:
            reason = f"has the byte order of other machines; use {value.newbyteorder('=')!r}"
        else:
            names = ", ".join(t.name for t in NUMPY_OF)
            reason = (
                f"is not an element type; expected a types.DALIDataType ({names}), such a type of "
                "NumPy, PyTorch, JAX or TensorFlow, Python's bool, int or float, or a name, "
                'such as "float32"'
            )
        raise ArgumentTypeError(f"{value!r} {reason}") from None


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
    """Return the element type of `dali_type` in memory: as `to_numpy_type`, enumerations as
    int32.
    """
    found = _STORED.get(dali_type)
    if found is None:
        if dali_type in SIDE_TYPES:
            found = _UINT8
        else:
            found = _INT32 if dali_type in ENUM_TYPES else np.dtype(to_numpy_type(dali_type))
        _STORED[dali_type] = found
    return found


_STORED: dict[DALIDataType, np.dtype[Any]] = {}


def is_stored(dali_type: DALIDataType) -> bool:
    """Return True if tensors can have elements of `dali_type`."""
    return dali_type in NUMPY_OF or dali_type in ENUM_TYPES


def to_dali_type(framework_type: Any) -> DALIDataType:
    """Element type that NumPy, PyTorch or Python call `framework_type`.

    It takes what DALI's function takes; `as_data_type` takes more.

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
    found = FRAMEWORK_NAMES.get(name.removeprefix("torch."))
    if found is None:
        raise ArgumentTypeError(
            f"{framework_type!r} is not the name of an element type; "
            f"those known are {', '.join(sorted(FRAMEWORK_NAMES))}."
        )
    return found


def is_integer(dtype: DALIDataType) -> bool:
    """Return True if `dtype` is one of the eight integer types."""
    return dtype in INTEGERS


def is_float(dtype: DALIDataType) -> bool:
    """Return True if `dtype` is one of the three floating-point types."""
    return dtype in FLOATS


def is_bool(dtype: DALIDataType) -> bool:
    """Return True if `dtype` is `types.BOOL`."""
    return dtype == DALIDataType.BOOL


def is_enum_type(dtype: DALIDataType) -> bool:
    """Return True if elements of `dtype` are members of an enumeration."""
    return dtype in ENUM_TYPES
