"""DLPack capsules of other libraries: what memory they describe, and when it is given back.

The structures are those of https://dmlc.github.io/dlpack/latest/c_api.html, version 1.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

import numpy as np

from penstock.errors import ArgumentTypeError, DataTypeError, UsageError

_LEGACY, _VERSIONED = b"dltensor", b"dltensor_versioned"
_MAJOR_VERSION = 1
_KINDS = {0: "i", 1: "u", 2: "f", 6: "b"}
"""NumPy's kinds of DLPack's type codes: integers, unsigned ones, floats, truth values."""


class _Device(ctypes.Structure):
    _fields_ = (("type", ctypes.c_int32), ("id", ctypes.c_int32))


class _DataType(ctypes.Structure):
    _fields_ = (("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16))


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device", _Device),
        ("ndim", ctypes.c_int32),
        ("dtype", _DataType),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


_Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class _Managed(ctypes.Structure):
    _fields_ = (("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", _Deleter))


class _ManagedVersioned(ctypes.Structure):
    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", _Deleter),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    )


_is_valid = ctypes.pythonapi.PyCapsule_IsValid
_is_valid.argtypes = (ctypes.py_object, ctypes.c_char_p)
_is_valid.restype = ctypes.c_int
_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)
_rename = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_SetName", ctypes.pythonapi)
)
_USED = {_LEGACY: b"used_dltensor", _VERSIONED: b"used_dltensor_versioned"}
"""What a capsule is called once its content has been taken. Capsules do not copy their names."""


class _Content:
    """What was taken out of a capsule; given back when this object is dropped."""

    __slots__ = ("_address", "_deleter")

    def __init__(self, address: int, deleter: Any) -> None:
        self._address = address
        self._deleter = deleter

    def __del__(self) -> None:
        if self._deleter:
            self._deleter(self._address)


@dataclass(frozen=True, slots=True)
class Described:
    """The memory that a capsule describes.

    Attributes
    ----------
    address
        Of the first element.
    shape
        Extents of the axes.
    strides
        In bytes; None for C order.
    dtype
        Element type.
    device
        Type and number of the device, as DLPack has them.
    owner
        Keeps the memory alive.
    """

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None
    dtype: np.dtype
    device: tuple[int, int]
    owner: Any


def consume(capsule: Any) -> Described:
    """Take the content out of a DLPack capsule.

    Raises
    ------
    UsageError
        If it was taken before.
    DataTypeError
        If the elements are of a type that NumPy does not have.
    ArgumentTypeError
        If the capsule is of another major version of DLPack.
    """
    name, address, managed = _content(capsule)
    tensor = managed.tensor
    dtype = _dtype(tensor.dtype)
    ndim = tensor.ndim
    shape = tuple(tensor.shape[:ndim]) if ndim else ()
    strides = None
    if ndim and tensor.strides:
        strides = tuple(step * dtype.itemsize for step in tensor.strides[:ndim])
    described = Described(
        (tensor.data or 0) + tensor.byte_offset,
        shape,
        strides,
        dtype,
        (tensor.device.type, tensor.device.id),
        _Content(address, managed.deleter),
    )
    _rename(capsule, _USED[name])
    return described


def device_of_capsule(capsule: Any) -> tuple[int, int]:
    """Type and number of the device that the memory of an unused capsule is on."""
    device = _content(capsule)[2].tensor.device
    return device.type, device.id


def _content(capsule: Any) -> tuple[bytes, int, Any]:
    """Name of a capsule, and address and structure of what it holds."""
    name = next((n for n in _USED if _is_valid(capsule, n)), None)
    if name is None:
        raise UsageError("This DLPack capsule has been used before; each serves one import.")
    address = _pointer(capsule, name)
    if name == _LEGACY:
        return name, address, _Managed.from_address(address)
    managed = _ManagedVersioned.from_address(address)
    if managed.major != _MAJOR_VERSION:
        raise ArgumentTypeError(
            f"This DLPack capsule has version {managed.major}.{managed.minor}; version "
            f"{_MAJOR_VERSION} is known here."
        )
    return name, address, managed


def _dtype(found: Any) -> np.dtype:
    kind = _KINDS.get(found.code)
    if kind is None or found.lanes != 1 or found.bits % 8:
        raise DataTypeError(
            f"Elements of DLPack type code {found.code} with {found.bits} bits and {found.lanes} "
            "lanes are not supported, only integers, floats and truth values."
        )
    return np.dtype(f"{kind}{found.bits // 8}")
