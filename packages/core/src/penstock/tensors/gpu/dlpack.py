"""DLPack capsules of other libraries: what memory they describe, and when it is given back.

The structures are those of https://dmlc.github.io/dlpack/latest/c_api.html, version 1.
"""

from __future__ import annotations

import ctypes
import functools
import struct
from typing import Any, NamedTuple

import numpy as np

from penstock.errors import ArgumentTypeError, DataTypeError, UsageError

_LEGACY, _VERSIONED = b"dltensor", b"dltensor_versioned"
_MAJOR_VERSION = 1
_KINDS = {0: "i", 1: "u", 2: "f", 6: "b"}
"""NumPy's kinds of DLPack's type codes: integers, unsigned ones, floats, truth values."""

_TENSOR = "QiiiBBHQQQ"
"""Data; type and number of the device; axes; code, bits and lanes of the type; shape, strides,
offset in bytes. All fields of the structures are aligned without gaps.
"""
_STRUCTS = {
    _LEGACY: struct.Struct(f"={_TENSOR}QQ"),  # then context and deleter
    _VERSIONED: struct.Struct(f"=IIQQQ{_TENSOR}"),  # behind version, context, deleter and flags
}
_BYTES = {name: ctypes.c_char * found.size for name, found in _STRUCTS.items()}
_Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)

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

    def __init__(self, address: int, deleter: int) -> None:
        self._address = address
        self._deleter = deleter

    def __del__(self) -> None:
        if self._deleter:
            _function(self._deleter)(self._address)


@functools.cache
def _function(deleter: int) -> Any:
    """The deleter at an address. Libraries have few of them, and are never unloaded."""
    return _Deleter(deleter)


@functools.cache
def _extents(ndim: int) -> Any:
    return ctypes.c_int64 * ndim


class Described(NamedTuple):
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
    name, address, tensor, deleter = _content(capsule)
    data, device, number, ndim, code, bits, lanes, shape_at, strides_at, offset = tensor
    dtype = _dtype(code, bits, lanes)
    shape: tuple[int, ...] = ()
    strides = None
    if ndim:
        extents = _extents(ndim)
        shape = tuple(extents.from_address(shape_at)[:])
        if strides_at:
            size = dtype.itemsize
            strides = tuple([step * size for step in extents.from_address(strides_at)[:]])
    described = Described(
        data + offset, shape, strides, dtype, (device, number), _Content(address, deleter)
    )
    _rename(capsule, _USED[name])
    return described


def device_of_capsule(capsule: Any) -> tuple[int, int]:
    """Type and number of the device that the memory of an unused capsule is on."""
    tensor = _content(capsule)[2]
    return tensor[1], tensor[2]


def _content(capsule: Any) -> tuple[bytes, int, tuple[int, ...], int]:
    """Name of a capsule; address, tensor and deleter of what it holds."""
    if _is_valid(capsule, _VERSIONED):
        name = _VERSIONED
    elif _is_valid(capsule, _LEGACY):
        name = _LEGACY
    else:
        raise UsageError("This DLPack capsule has been used before; each serves one import.")
    address = _pointer(capsule, name)
    fields = _STRUCTS[name].unpack(_BYTES[name].from_address(address))
    if name == _LEGACY:
        return name, address, fields[:10], fields[11]
    major, minor = fields[:2]
    if major != _MAJOR_VERSION:
        raise ArgumentTypeError(
            f"This DLPack capsule has version {major}.{minor}; version {_MAJOR_VERSION} is known "
            "here."
        )
    return name, address, fields[5:], fields[3]


@functools.cache
def _dtype(code: int, bits: int, lanes: int) -> np.dtype:
    kind = _KINDS.get(code)
    if kind is None or lanes != 1 or bits % 8:
        raise DataTypeError(
            f"Elements of DLPack type code {code} with {bits} bits and {lanes} lanes are not "
            "supported, only integers, floats and truth values."
        )
    return np.dtype(f"{kind}{bits // 8}")
