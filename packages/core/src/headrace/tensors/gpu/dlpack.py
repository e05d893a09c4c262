"""DLPack capsules of other libraries: what memory they describe, and when it is given back.

Many capsules are read as one table, which is several times faster than one by one.

The structures are those of https://dmlc.github.io/dlpack/latest/c_api.html, version 1.
"""

from __future__ import annotations

import ctypes
import functools
import struct
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from headrace.errors import ArgumentTypeError, DataTypeError, UsageError
from headrace.tensors.gpu.batch import contiguous_strides

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
    _VERSIONED: struct.Struct(f"=IIQQQ{_TENSOR}"),  # after version, context, deleter and flags
}
_BYTES = {name: ctypes.c_char * found.size for name, found in _STRUCTS.items()}
# The same for NumPy. `kind` is all that arrays which are alike have in common.
_COLUMNS = [("data", "u8"), ("kind", "u8", 2), ("shape", "u8"), ("strides", "u8"), ("offset", "u8")]
_ROWS = {
    _LEGACY: np.dtype([*_COLUMNS, ("context", "u8"), ("deleter", "u8")]),
    _VERSIONED: np.dtype(
        [("version", "u4", 2), ("context", "u8"), ("deleter", "u8"), ("flags", "u8"), *_COLUMNS]
    ),
}
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
"""Names of capsules whose content has been taken. Capsules do not copy their names."""


@functools.cache
def _function(deleter: int) -> Any:
    """The deleter at an address. Libraries have few of them, and are never unloaded."""
    return _Deleter(deleter)


class _Contents:
    """Content taken out of capsules; given back when this object is dropped."""

    __slots__ = ("_addresses", "_deleters")

    def __init__(self, addresses: Sequence[int], deleters: Sequence[int]) -> None:
        self._addresses = addresses
        self._deleters = deleters

    def __del__(self, _function: Any = _function) -> None:  # names are gone at the very end
        for address, deleter in zip(self._addresses, self._deleters, strict=True):
            if deleter:
                _function(deleter)(address)


@functools.cache
def _extents(ndim: int) -> Any:
    return ctypes.c_int64 * ndim


class CapsuleMemory(NamedTuple):
    """The memory that a capsule describes.

    `address`: of the first element. `shape`: extents of the axes. `strides`: in bytes; None for C
    order. `dtype`: element type. `device`: type and number of the device, as DLPack has them.
    `owner`: keeps the memory alive.
    """

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None
    dtype: np.dtype
    device: tuple[int, int]
    owner: Any


def consume(capsule: Any) -> CapsuleMemory:
    """Take the content out of a DLPack capsule."""
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
    described = CapsuleMemory(
        data + offset, shape, strides, dtype, (device, number), _Contents((address,), (deleter,))
    )
    _rename(capsule, _USED[name])
    return described


class DescribedArrays(NamedTuple):
    """The memory that several capsules describe: C-contiguous arrays that are alike.

    `addresses`: uint64 ``(arrays,)``: of the first elements. `shapes`: int64 ``(arrays, ndim)``.
    `dtype`, `device`, `owner`: as of `CapsuleMemory`, for all of them.
    """

    addresses: np.ndarray
    shapes: np.ndarray
    dtype: np.dtype
    device: tuple[int, int]
    owner: Any


def consume_all(capsules: Sequence[Any]) -> DescribedArrays | None:
    """Take the contents out of DLPack capsules, one at least."""
    name, _, tensor, _ = _content(capsules[0])
    _, device, number, ndim, code, bits, lanes, *_ = tensor
    dtype = _dtype(code, bits, lanes)
    try:
        places = [_pointer(capsule, name) for capsule in capsules]
    except ValueError:  # of another name
        return None
    table = _read(places, _BYTES[name], _ROWS[name])
    if (table["kind"] != table["kind"][0]).any():
        return None
    if name == _VERSIONED and (table["version"][:, 0] != _MAJOR_VERSION).any():
        return None
    shapes = np.empty((len(places), 0), np.int64)
    if ndim:
        extents = _bytes_of_extents(ndim)
        shapes = _read(table["shape"].tolist(), extents, _INT64).reshape(-1, ndim)
        strides_at = table["strides"].tolist()
        if any(strides_at):
            if not all(strides_at):
                return None
            strides = _read(strides_at, extents, _INT64).reshape(-1, ndim)
            right = (strides == contiguous_strides(shapes, 1)) | (shapes == 1)
            if not (right.all(axis=1) | (shapes == 0).any(axis=1)).all():
                return None
    used = _USED[name]
    for capsule in capsules:
        _rename(capsule, used)
    owner = _Contents(places, table["deleter"].tolist())
    addresses = table["data"] + table["offset"]
    return DescribedArrays(addresses, shapes, dtype, (device, number), owner)


_INT64 = np.dtype(np.int64)


def _read(places: list[int], each: Any, dtype: np.dtype) -> np.ndarray:
    """Read the values at these addresses, as one array."""
    return np.frombuffer(b"".join([each.from_address(place).raw for place in places]), dtype)


@functools.cache
def _bytes_of_extents(ndim: int) -> Any:
    return ctypes.c_char * (8 * ndim)


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
