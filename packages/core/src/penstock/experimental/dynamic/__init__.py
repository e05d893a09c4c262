"""Dynamic mode: operators that are called like functions, on data, outside of any pipeline.

The usual import is ``import penstock.experimental.dynamic as ndd``.
"""

from __future__ import annotations

from penstock.experimental.dynamic.devices import Device, DeviceLike, device
from penstock.experimental.dynamic.dtypes import (
    DataType,
    DType,
    ImageType,
    InterpType,
    bfloat16,
    dtype,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    type_id,
    uint8,
    uint16,
    uint32,
    uint64,
)
from penstock.experimental.dynamic.dtypes import bool_ as bool

__all__ = [
    "DType",
    "DataType",
    "Device",
    "DeviceLike",
    "ImageType",
    "InterpType",
    "bfloat16",
    "bool",
    "device",
    "dtype",
    "float16",
    "float32",
    "float64",
    "int8",
    "int16",
    "int32",
    "int64",
    "type_id",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
]
