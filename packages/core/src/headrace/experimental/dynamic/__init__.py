"""Dynamic mode: operators that are called like functions, on data, outside of any pipeline.

The usual import is ``import headrace.experimental.dynamic as ndd``.
"""

from __future__ import annotations

import importlib as _importlib
import sys as _sys
from typing import Any as _Any

from headrace.experimental.dynamic import calling as _calling
from headrace.experimental.dynamic import capture as capture
from headrace.experimental.dynamic import checkpoint as checkpoint
from headrace.experimental.dynamic import functions as _functions
from headrace.experimental.dynamic import math as math
from headrace.experimental.dynamic import pytorch as pytorch
from headrace.experimental.dynamic import random as random
from headrace.experimental.dynamic.batches import Batch, as_batch, batch
from headrace.experimental.dynamic.cached import CachedFunction
from headrace.experimental.dynamic.contexts import EvalContext, get_current_stream
from headrace.experimental.dynamic.devices import Device, DeviceLike, device
from headrace.experimental.dynamic.dtypes import (
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
from headrace.experimental.dynamic.dtypes import bool_ as bool
from headrace.experimental.dynamic.external import ExternalSource
from headrace.experimental.dynamic.image_files import imread
from headrace.experimental.dynamic.modes import EvalMode
from headrace.experimental.dynamic.streams import (
    Stream,
    get_default_stream,
    set_current_stream,
    set_default_stream,
    stream,
)
from headrace.experimental.dynamic.tensors import Tensor, as_input, as_tensor, tensor
from headrace.experimental.dynamic.thread_pools import (
    ThreadPool,
    get_num_threads,
    set_num_threads,
)
from headrace.to_come import PRIVATE as _PRIVATE
from headrace.tracebacks import public as _public

__all__ = [
    "Batch",
    "CachedFunction",
    "DType",
    "DataType",
    "Device",
    "DeviceLike",
    "EvalContext",
    "EvalMode",
    "ExternalSource",
    "ImageType",
    "InterpType",
    "Stream",
    "Tensor",
    "ThreadPool",
    "as_batch",
    "as_tensor",
    "batch",
    "bfloat16",
    "bool",
    "capture",
    "checkpoint",
    "device",
    "dtype",
    "float16",
    "float32",
    "float64",
    "get_current_stream",
    "get_default_stream",
    "get_num_threads",
    "imread",
    "int8",
    "int16",
    "int32",
    "int64",
    "math",
    "pytorch",
    "random",
    "set_current_stream",
    "set_default_stream",
    "set_num_threads",
    "stream",
    "tensor",
    "type_id",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
]

_calling.install(Tensor, Batch, as_input)
del as_input


@_public
def __getattr__(name: str) -> _Any:
    if name == "_ops" or (name.startswith("_") and f"{__name__}.{name}" in _PRIVATE):
        return _importlib.import_module(f"{__name__}.{name}")
    return _functions.lookup(__name__, name)


def __dir__() -> list[str]:
    # Modules that stand in a file are parts of this package, and those in `__all__` are public.
    parts = {
        name
        for name in _functions.names(__name__)
        if getattr(_sys.modules.get(f"{__name__}.{name}"), "__file__", None) is not None
    }
    return sorted({*__all__, *_functions.names(__name__)} - (parts - {*__all__}))


_functions.install(__name__)
