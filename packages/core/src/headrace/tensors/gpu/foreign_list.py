"""Lists of arrays on a GPU that another library owns, read as one.

Streams wait once for all arrays, and one object keeps their memory: a list costs little more than
its longest single step.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.tensors.base import TensorBase
from headrace.tensors.gpu.access import Access
from headrace.tensors.gpu.batch import contiguous_strides
from headrace.tensors.gpu.dlpack import consume_all
from headrace.tensors.gpu.foreign import ON_GPU, access_behind, told_stream
from headrace.tensors.gpu.foreign_memory import ForeignMemory
from headrace.tensors.gpu.libraries import described, same
from headrace.tensors.gpu.runtime import current_device, device_of, get_runtime
from headrace.tensors.gpu.streams import stream_number
from headrace.types.dtypes import DALI_OF_NUMPY

if TYPE_CHECKING:
    from headrace.tensors.gpu.runtime import Runtime


@dataclass(frozen=True, slots=True)
class ForeignList:
    """C-contiguous arrays of one type and number of axes, in the memory of one GPU.

    `access`: access tracking of their memory. `writers`: streams that they are written on, as far
    as known. `pointers`: uint64 ``(arrays,)``: the address of each. `shapes`: int64 ``(arrays,
    ndim)``. `dtype`: element type.
    """

    access: Access
    writers: frozenset[int]
    pointers: np.ndarray
    shapes: np.ndarray
    dtype: np.dtype


def all_on_gpu(
    values: Sequence[Any], stream: Any = None, device_id: int | None = None
) -> ForeignList | None:
    """The memory of `values`, without a copy."""
    kinds = set(map(type, values))
    if len(kinds) != 1:
        return None
    (kind,) = kinds
    if issubclass(kind, TensorBase):
        return None
    known = described(values)
    if known is not None:
        if not same(list(map(len, known.shapes))):
            return None
        access = access_behind(known, stream)
        return _found(access, (access.stream,), known.addresses, known.shapes, known.dtype)
    try:
        if hasattr(kind, "__dlpack__"):
            return _by_dlpack(values, stream)
        if hasattr(kind, "__cuda_array_interface__"):
            return _by_interface(values, stream, device_id)
    except Exception:  # it comes again
        return None
    return None


def _found(
    access: Access,
    writers: Iterable[int | None],
    addresses: Sequence[int],
    shapes: Sequence[tuple[int, ...]],
    dtype: np.dtype,
) -> ForeignList:
    pointers = np.fromiter(addresses, np.uint64, len(addresses))
    known = frozenset(stream for stream in writers if stream is not None)
    return ForeignList(access, known, pointers, _rows(shapes), dtype)


def _rows(each: Sequence[tuple[int, ...]]) -> np.ndarray:
    """Tuples of one length as an int64 array."""
    count, length = len(each), len(each[0])
    return np.fromiter(chain.from_iterable(each), np.int64, count * length).reshape(count, length)


def _by_dlpack(values: Sequence[Any], stream: Any) -> ForeignList | None:
    if int(values[0].__dlpack_device__()[0]) not in ON_GPU:
        return None
    devices = [value.__dlpack_device__() for value in values]
    if not same(devices):
        return None
    runtime = get_runtime(int(devices[0][1]))
    own = runtime.acquire_stream() if stream is None else stream_number(stream)
    try:
        with runtime.active():
            found = consume_all(_exported(values, own))
            if found is None or found.dtype not in DALI_OF_NUMPY:
                return None
            if found.device not in [(kind, runtime.device_id) for kind in ON_GPU]:
                return None
            memory = ForeignMemory(runtime, found.owner, is_scattered=len(values) > 1)
            access = Access(runtime, (memory,), own, runtime.record(own))
    finally:
        if stream is None:
            runtime.release_stream(own)
    return ForeignList(access, frozenset(), found.addresses, found.shapes, found.dtype)


def _exported(values: Sequence[Any], stream: int) -> list[Any]:
    try:
        return [value.__dlpack__(stream=stream, max_version=(1, 1)) for value in values]
    except TypeError:  # made before DLPack had versions
        return [value.__dlpack__(stream=stream) for value in values]


def _packed(
    shapes: list[tuple[int, ...]], strides: list[tuple[int, ...] | None], dtype: np.dtype
) -> bool:
    """Return True if all arrays are C-contiguous."""
    told = [k for k, steps in enumerate(strides) if steps is not None]
    if not told:
        return True
    extents = _rows([shapes[k] for k in told])
    steps = _rows([strides[k] or () for k in told])
    right = (steps == contiguous_strides(extents, dtype.itemsize)) | (extents == 1)
    return bool((right.all(axis=1) | (extents == 0).any(axis=1)).all())


def _by_interface(values: Sequence[Any], stream: Any, device_id: int | None) -> ForeignList | None:
    interfaces = [value.__cuda_array_interface__ for value in values]
    shapes = [each["shape"] for each in interfaces]
    types = [each["typestr"] for each in interfaces]
    dtype = np.dtype(types[0])
    if not (same(types) and dtype in DALI_OF_NUMPY and same(list(map(len, shapes)))):
        return None
    if [each for each in interfaces if each.get("mask") is not None]:
        return None
    if not _packed(shapes, [each.get("strides") for each in interfaces], dtype):
        return None
    addresses = [each["data"][0] or 0 for each in interfaces]
    if device_id is None:
        devices = {device_of(address) for address in addresses if address} or {current_device()}
        if len(devices) > 1:
            return None
        (device_id,) = devices
    if stream is not None:
        told = {stream_number(stream)}
    else:
        ways = {(each.get("version", 0), each.get("stream")) for each in interfaces}
        told = {number for way in ways if (number := told_stream(*way)) is not None}
    runtime = get_runtime(device_id)
    memory = ForeignMemory(runtime, tuple(values), is_scattered=len(values) > 1)
    access = _access_behind_all(runtime, memory, told)
    return _found(access, told, addresses, shapes, dtype)


def _access_behind_all(runtime: Runtime, memory: ForeignMemory, streams: set[int]) -> Access:
    """The way to memory that work on all these streams writes."""
    owners = (memory,)
    if not streams:
        return Access(runtime, owners, None, None)
    with runtime.active():
        events = [runtime.record(stream) for stream in streams]
        if len(events) == 1:
            return Access(runtime, owners, next(iter(streams)), events[0])
        own = runtime.acquire_stream()
        for event in events:
            runtime.wait(own, event)
        event = runtime.record(own)
        runtime.release_stream(own)
    return Access(runtime, owners, None, event)
