"""External data that is on a GPU already."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.errors import ArgumentValueError, DataTypeError

if TYPE_CHECKING:
    from penstock.tensors.gpu.tensor_list import TensorListGPU

_PROTOCOLS = ("__cuda_array_interface__", "__dlpack_device__")
_INTERNAL_STREAM = -1
_INTERNAL_STREAM_AS_POINTER = ctypes.c_void_p(_INTERNAL_STREAM).value


def is_on_gpu(batch: Any) -> bool:
    """Whether a batch, one array or a list of samples, is on a GPU.

    Raises
    ------
    DataTypeError
        If some samples are and some are not.
    """
    if not isinstance(batch, (list, tuple)):
        return _is_on_gpu(batch)
    found = [_is_on_gpu(sample) for sample in batch]
    if len(set(found)) > 1:
        raise DataTypeError(
            f"Samples of a batch are on the host or on a GPU, all of them: sample "
            f"{found.index(False)} is on the host, sample {found.index(True)} on a GPU."
        )
    return bool(found) and found[0]


def _is_on_gpu(value: Any) -> bool:
    if isinstance(value, (np.ndarray, np.generic, bytes, int, float, list)) or value is None:
        return False
    name = type(value).__name__
    if name in ("TensorListGPU", "TensorListCPU"):
        return name == "TensorListGPU"
    if name != "PyCapsule" and not any(hasattr(value, protocol) for protocol in _PROTOCOLS):
        return False
    from penstock.tensors.gpu.foreign import is_on_gpu

    return is_on_gpu(value)


def own_batch(data: Any, stream: Any, *, copy: bool) -> TensorListGPU:
    """The samples of a batch on a GPU.

    Parameters
    ----------
    data
        An array whose outermost axis counts the samples, a list of samples, or a batch.
    stream
        The stream that the data is written on; what the data itself says if None. With -1 it is
        written, and has been copied when this returns.
    copy
        Whether the result gets memory of its own. Work that the writers of the data queue from
        now on comes behind the copy.
    """
    from penstock.tensors.gpu.streams import likely_streams, stream_number
    from penstock.tensors.gpu.tensor_list import TensorListGPU

    internal = _is_internal(stream)
    shared = TensorListGPU(data, contiguous=False, stream=None if internal else stream)
    layout = shared.layout()
    if not layout and type(data).__name__ == "TensorGPU":
        layout = data.layout()
        shared.set_layout(layout[1:] if layout.startswith("N") else None)
    if not copy:
        return shared
    copied = shared._make_copy()
    access = copied._access
    if internal:
        access.grant_host()
        return copied
    writers = set(likely_streams(access.runtime))
    if stream is not None:
        writers.add(stream_number(stream))
    elif shared.stream is not None:
        writers.add(shared.stream)
    access.hold_back(writers)
    return copied


def _is_internal(stream: Any) -> bool:
    if isinstance(stream, ctypes.c_void_p):
        stream = stream.value
    return isinstance(stream, int) and stream in (_INTERNAL_STREAM, _INTERNAL_STREAM_AS_POINTER)


def check_device(batch: TensorListGPU, device_id: int | None) -> None:
    """Check that a batch is on the GPU of the pipeline.

    Raises
    ------
    ArgumentValueError
        If it is on another one.
    """
    if device_id is not None and batch.device_id() != device_id:
        raise ArgumentValueError(
            f"External data is on GPU {batch.device_id()}; the pipeline runs on GPU {device_id}. "
            "Copy it there, or to the host."
        )
