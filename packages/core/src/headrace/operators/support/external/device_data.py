"""External data that is on a GPU already."""

from __future__ import annotations

import ctypes
from collections.abc import Collection
from typing import Any

import numpy as np

from headrace.errors import ArgumentValueError, DataTypeError
from headrace.tensors.gpu import foreign_list as _foreign_lists
from headrace.tensors.gpu import streams as _streams
from headrace.tensors.gpu import tensor_list as _tensor_lists
from headrace.tensors.gpu.tensor_list import TensorListGPU

_PROTOCOLS = ("__dlpack_device__", "__cuda_array_interface__")  # the latter is slow to look at
_ON_HOST = (np.ndarray, np.generic, bytes, int, float, list, type(None))
_INTERNAL_STREAM = -1
_INTERNAL_STREAM_AS_POINTER = ctypes.c_void_p(_INTERNAL_STREAM).value


def batch_on_gpu(data: Any, stream: Any, *, copy: bool) -> TensorListGPU | None:
    """The samples of a batch that is on a GPU; None if it is on the host."""
    if _surely_on_host(data):
        return None
    internal = stream is not None and _is_internal(stream)
    found = _shared(data, None if internal else stream)
    if found is None or not copy:
        return None if found is None else found[0]
    shared = found[0]
    writers = set(found[1])
    import headrace.kernels.gpu.strided_copy  # noqa: F401 - copies of many samples are one launch

    copied = shared._make_copy()
    access = copied._access
    if internal:
        access.grant_host()
        return copied
    writers.update(_streams.likely_streams(access.runtime))
    if stream is not None:
        writers.add(_streams.stream_number(stream))
    access.hold_back(writers)
    return copied


def is_on_gpu(data: Any) -> bool:
    """True if a batch, one array or a list of samples, is on a GPU."""
    return not _surely_on_host(data) and _is_on_gpu(data)


def _shared(data: Any, stream: Any) -> tuple[TensorListGPU, Collection[int]] | None:
    """The samples, in the memory they are in, and the streams that write it."""
    if isinstance(data, (list, tuple)):
        alike = _foreign_lists.all_on_gpu(data, stream)
        if alike is not None:
            return _tensor_lists.TensorListGPU._from_foreign(alike), alike.writers
    else:
        whole = _tensor_lists.TensorListGPU._from_array(data, stream)
        if whole is not None:
            written_on = whole.stream
            return whole, () if written_on is None else (written_on,)
    if not _is_on_gpu(data):
        return None
    shared = _tensor_lists.TensorListGPU(data, contiguous=False, stream=stream)
    layout = shared.layout()
    if not layout and type(data).__name__ == "TensorGPU":
        layout = data.layout()
        shared.set_layout(layout[1:] if layout.startswith("N") else None)
    return shared, () if shared.stream is None else (shared.stream,)


def _surely_on_host(data: Any) -> bool:
    """True if types alone show that a batch, one array or a list of samples, is on the host."""
    if not isinstance(data, (list, tuple)):
        return isinstance(data, _ON_HOST)
    return all(issubclass(kind, _ON_HOST) for kind in set(map(type, data)))


def _is_on_gpu(batch: Any) -> bool:
    if not isinstance(batch, (list, tuple)):
        return _is_sample_on_gpu(batch)
    found = [_is_sample_on_gpu(sample) for sample in batch]
    if len(set(found)) > 1:
        raise DataTypeError(
            f"Samples of a batch are on the host or on a GPU, all of them: sample "
            f"{found.index(False)} is on the host, sample {found.index(True)} on a GPU."
        )
    return bool(found) and found[0]


def _is_sample_on_gpu(value: Any) -> bool:
    if isinstance(value, _ON_HOST):
        return False
    name = type(value).__name__
    if name in ("TensorListGPU", "TensorListCPU"):
        return name == "TensorListGPU"
    if name != "PyCapsule" and not any(hasattr(value, protocol) for protocol in _PROTOCOLS):
        return False
    from headrace.tensors.gpu.foreign import is_on_gpu

    return is_on_gpu(value)


def _is_internal(stream: Any) -> bool:
    if isinstance(stream, ctypes.c_void_p):
        stream = stream.value
    return isinstance(stream, int) and stream in (_INTERNAL_STREAM, _INTERNAL_STREAM_AS_POINTER)


def check_device(batch: TensorListGPU, device_id: int | None) -> None:
    """Check that a batch is on the GPU of the pipeline."""
    if device_id is not None and batch.device_id() != device_id:
        raise ArgumentValueError(
            f"External data is on GPU {batch.device_id()}; the pipeline runs on GPU {device_id}. "
            "Copy it there, or to the host."
        )
