"""Element types of dynamic mode: objects such as ``int32`` that say what their elements are."""

from __future__ import annotations

import enum
import importlib
import math
from typing import Any, Final, final

import numpy as np

from headrace.errors import ArgumentTypeError, ArgumentValueError, UnknownNameError
from headrace.experimental.dynamic.invariants import plain
from headrace.types import DALIDataType, DataTypeLike, as_data_type, to_dali_type
from headrace.types.dtypes import FRAMEWORK_NAMES, SIDE_TYPES

_STANDARD_FLOATS: Final = {8: (4, 3), 16: (5, 10), 32: (8, 23), 64: (11, 52)}
"""Bits of exponent and significand of the floating-point types named by their size alone."""
_LETTERS: Final = {"i": "signed", "u": "unsigned", "f": "float"}


@final
class DType:
    """Element type of a `Tensor` or a `Batch`.

    The types there are, are members of ``headrace.experimental.dynamic``: `int8` to `int64`,
    `uint8` to `uint64`, `float16`, `bfloat16`, `float32`, `float64`, `bool`, and `DataType`,
    `ImageType`, `InterpType` for enumerations. There is no need to make one; two that say the same
    are equal. Called, a type makes a tensor of its elements: ``float32([1, 2])``.

    Attributes
    ----------
    kind
        What the elements are.
    bits, bytes
        Size of an element.
    exponent_bits, significand_bits
        Parts of a floating-point number; `None` for other kinds.
    type_id
        The same type as a member of `headrace.types.DALIDataType`; `None` for `bfloat16`, which
        operators do not know.
    name
        Short name: ``"i32"``, ``"f16"``, ``"bool"``.
    """

    class Kind(enum.Enum):
        """Kind of a type's elements."""

        signed = 1
        unsigned = 2
        float = 3
        bool = 4
        enum = 5

    __slots__ = (
        "_hash",
        "bits",
        "bytes",
        "exponent_bits",
        "kind",
        "name",
        "significand_bits",
        "type_id",
    )

    kind: DType.Kind
    bits: int
    bytes: int
    exponent_bits: int | None
    significand_bits: int | None
    type_id: DALIDataType | None
    name: str
    _hash: int

    def __init__(
        self,
        kind: DType.Kind,
        bits: int,
        exponent_bits: int | None = None,
        significand_bits: int | None = None,
        bytes: int | None = None,
        type_id: DALIDataType | None = None,
        name: str | None = None,
    ) -> None:
        if kind is DType.Kind.float and exponent_bits is None:
            exponent_bits, standard = _STANDARD_FLOATS.get(bits, (None, None))
            if significand_bits is None:
                significand_bits = standard
        if name is None:
            if kind is DType.Kind.enum:
                raise ArgumentValueError(
                    "An enumeration type has no name that follows from `bits`."
                )
            name = "bool" if kind is DType.Kind.bool else f"{_letter(kind)}{bits}"
        values = {
            "kind": kind,
            "bits": bits,
            "bytes": math.ceil(bits / 8) if bytes is None else bytes,
            "exponent_bits": exponent_bits,
            "significand_bits": significand_bits,
            "type_id": type_id,
            "name": name,
            "_hash": hash((kind, bits, exponent_bits, significand_bits, name)),
        }
        for attribute, value in values.items():
            object.__setattr__(self, attribute, value)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{name!r} of an element type cannot be changed.")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{name!r} of an element type cannot be removed.")

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, DType):
            return NotImplemented
        return (
            self.name == other.name
            and self.kind is other.kind
            and self.bits == other.bits
            and self.exponent_bits == other.exponent_bits
            and self.significand_bits == other.significand_bits
        )

    def __hash__(self) -> int:
        return self._hash

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        text = f"DType(kind=Kind.{self.kind.name}, bits={self.bits}"
        if self.exponent_bits is not None:
            text += f", exponent_bits={self.exponent_bits}"
        if self.significand_bits is not None:
            text += f", significand_bits={self.significand_bits}"
        return text + ")"

    def __reduce__(self) -> Any:
        if BY_NAME.get(self.name) is self:
            return DType.parse, (self.name,)
        return DType, (
            self.kind,
            self.bits,
            self.exponent_bits,
            self.significand_bits,
            self.bytes,
            self.type_id,
            self.name,
        )

    def __call__(self, data: Any, device: Any = None, layout: str | None = None) -> Any:
        """Make a tensor with elements of this type: ``tensor(data, dtype=self, ...)``."""
        # The module of all names of dynamic mode is imported after this one.
        dynamic = importlib.import_module("headrace.experimental.dynamic")
        return dynamic.tensor(data, dtype=self, device=device, layout=layout)

    @staticmethod
    def parse(name: str) -> DType:
        """The type called `name`: ``"i32"``, ``"f16"``, ``"bool"``, ``"bfloat16"``, ...

        Raises
        ------
        ArgumentValueError
            If it is not the name of a type.
        UnknownNameError
            If it could be, but there is no type of that size.
        """
        found = BY_NAME.get(name)
        if found is not None:
            return found
        letter, size = name[:1], name[1:]
        message = f"There is no element type {name!r}; the names are {', '.join(BY_NAME)}."
        if name == "tf32" or (letter in _LETTERS and size.isdecimal()):
            raise UnknownNameError(message)
        raise ArgumentValueError(message)

    @staticmethod
    def from_type_id(type_id: DALIDataType) -> DType:
        """The type that `headrace.types` calls `type_id`.

        Raises
        ------
        UnknownNameError
            If tensors cannot have elements of that type.
        """
        try:
            return BY_TYPE_ID[type_id]
        except KeyError:
            raise UnknownNameError(
                f"{type_id!r} is no element type of tensors; "
                f"these are {', '.join(t.name for t in BY_TYPE_ID)}."
            ) from None

    @staticmethod
    def from_fw_type(numpy_type: Any) -> DType:
        """The type that NumPy, PyTorch or Python call `numpy_type`.

        Raises
        ------
        ArgumentTypeError
            If there is no such element type.
        """
        if isinstance(numpy_type, np.dtype) and not numpy_type.isnative:
            raise ArgumentTypeError(
                f"{numpy_type!r} has the byte order of other machines; convert the data to "
                f"{numpy_type.newbyteorder('=')!r} first."
            )
        return BY_TYPE_ID[to_dali_type(numpy_type)]


def _letter(kind: DType.Kind) -> str:
    return next(letter for letter, name in _LETTERS.items() if name == kind.name)


def _number(kind: DType.Kind, bits: int, type_id: DALIDataType) -> DType:
    return DType(kind, bits, type_id=type_id)


int8: Final = _number(DType.Kind.signed, 8, DALIDataType.INT8)
int16: Final = _number(DType.Kind.signed, 16, DALIDataType.INT16)
int32: Final = _number(DType.Kind.signed, 32, DALIDataType.INT32)
int64: Final = _number(DType.Kind.signed, 64, DALIDataType.INT64)
uint8: Final = _number(DType.Kind.unsigned, 8, DALIDataType.UINT8)
uint16: Final = _number(DType.Kind.unsigned, 16, DALIDataType.UINT16)
uint32: Final = _number(DType.Kind.unsigned, 32, DALIDataType.UINT32)
uint64: Final = _number(DType.Kind.unsigned, 64, DALIDataType.UINT64)
float16: Final = _number(DType.Kind.float, 16, DALIDataType.FLOAT16)
float32: Final = _number(DType.Kind.float, 32, DALIDataType.FLOAT)
float64: Final = _number(DType.Kind.float, 64, DALIDataType.FLOAT64)
bfloat16: Final = DType(DType.Kind.float, 16, exponent_bits=8, significand_bits=7, name="bfloat16")
bool_: Final = DType(DType.Kind.bool, 8, type_id=DALIDataType.BOOL)
DataType: Final = DType(DType.Kind.enum, 32, type_id=DALIDataType.DATA_TYPE, name="DataType")
ImageType: Final = DType(DType.Kind.enum, 32, type_id=DALIDataType.IMAGE_TYPE, name="ImageType")
InterpType: Final = DType(DType.Kind.enum, 32, type_id=DALIDataType.INTERP_TYPE, name="InterpType")

MEMBERS: Final[dict[str, DType]] = {
    "int8": int8,
    "int16": int16,
    "int32": int32,
    "int64": int64,
    "uint8": uint8,
    "uint16": uint16,
    "uint32": uint32,
    "uint64": uint64,
    "float16": float16,
    "float32": float32,
    "float64": float64,
    "bfloat16": bfloat16,
    "bool": bool_,
    "DataType": DataType,
    "ImageType": ImageType,
    "InterpType": InterpType,
}
"""All types by their names in ``headrace.experimental.dynamic``."""

BY_TYPE_ID: Final[dict[DALIDataType, DType]] = {
    t.type_id: t for t in MEMBERS.values() if t.type_id is not None
}
"""The types that operators know, by what they call them."""

BY_TYPE_ID.update(
    {side: DType(DType.Kind.enum, 8, type_id=side, name=side.name.lower()) for side in SIDE_TYPES}
)

BY_NAME: Final[dict[str, DType]] = {t.name: t for t in MEMBERS.values()}
"""All types by their short names."""


def dtype(dtype: DataTypeLike | DType) -> DType:
    """The element type that `dtype` stands for.

    Parameters
    ----------
    dtype
        A `DType`, a short name such as ``"f32"``, or whatever `headrace.types.as_data_type` takes:
        a member of `headrace.types.DALIDataType`, a type or dtype of NumPy, PyTorch and others,
        Python's ``bool``, ``int`` (`int32`) and ``float`` (`float32`), names such as ``"float32"``.
        Where NumPy has the same short name for another type, it is not NumPy's: ``"i8"`` is
        `int8`.

    Raises
    ------
    ArgumentValueError, UnknownNameError, ArgumentTypeError
        If there is no such type: a name, a member without elements, anything else.
    """
    dtype = plain(dtype)
    if isinstance(dtype, DType):
        return dtype
    if isinstance(dtype, str) and (dtype in BY_NAME or dtype not in FRAMEWORK_NAMES):
        return DType.parse(dtype)
    return DType.from_type_id(as_data_type(dtype))


def type_id(dtype: DType | DALIDataType) -> DALIDataType | None:
    """Name of an element type in `headrace.types`; `None` for `bfloat16`.

    Raises
    ------
    ArgumentValueError
        If `dtype` is neither a `DType` nor a `headrace.types.DALIDataType`. The function `dtype`
        converts names and the types of other libraries.
    """
    if isinstance(dtype, DType):
        return dtype.type_id
    if isinstance(dtype, DALIDataType):
        return dtype
    raise ArgumentValueError(
        f"{dtype!r} is no element type; pass one such as `float32`, or convert it by `dtype`."
    )
