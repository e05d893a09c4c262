"""From batches to tensors of eager execution, which share the memory of the host or of a GPU.

Memory goes to TensorFlow through DLPack. TensorFlow aborts the process in the first operation that
gets memory which is not aligned: such memory is copied. DLPack of TensorFlow's says nothing about
streams either, and those of TensorFlow are its own business: there is no way to make them wait for
an event, or put one after their work. So:

* the program waits until a batch on a GPU is written before TensorFlow gets it;
* when TensorFlow lets go of memory, its streams may still have work to do with it. The memory is
  kept (`_given_up`) until TensorFlow's devices have been waited for.
"""

from __future__ import annotations

import functools
from collections import deque
from typing import Any

import numpy as np
import tensorflow as tf

from headrace.errors import UsageError
from headrace.plugin.tf.session import ALIGNMENT_BYTES
from headrace.tensors import TensorGPU
from headrace.tensors.gpu.access import Access

_given_up: deque[Any] = deque()
"""Owners of GPU memory that TensorFlow has released."""


class _LentMemory:
    """Owns memory for as long as TensorFlow has it."""

    __slots__ = ("_owner",)

    def __init__(self, owner: Any) -> None:
        self._owner = owner

    def __del__(self) -> None:
        # A single operation that needs no lock: TensorFlow calls it in threads of its own.
        _given_up.append(self._owner)


def from_host(array: np.ndarray) -> Any:
    """The tensor of an array: its memory if that is aligned and contiguous, else a copy."""
    shared = (
        array.dtype.kind != "O"
        and array.flags.c_contiguous
        and array.flags.writeable  # NumPy exports no other memory
        and array.ctypes.data % ALIGNMENT_BYTES == 0
    )
    with tf.device("/CPU:0"):
        if shared:
            return tf.experimental.dlpack.from_dlpack(array.__dlpack__())
        return tf.constant(array)


def from_gpu(tensor: TensorGPU) -> Any:
    """The tensor of memory on a GPU, on that GPU; a copy there of memory that is not aligned."""
    check_has_gpu(tensor.device_id())
    if tensor._address % ALIGNMENT_BYTES:
        tensor = tensor._make_copy()
    access = tensor._access
    access.grant_host()
    lent = Access(access.runtime, (_LentMemory(access),), None, None)
    shared = TensorGPU._wrap(
        lent, tensor._address, tensor._shape, tensor._layout, tensor._dtype, tensor._source
    )
    return tf.experimental.dlpack.from_dlpack(shared.__dlpack__())


def take_back() -> None:
    """Let memory go of which TensorFlow has let go, as soon as its devices have done their work."""
    count = len(_given_up)
    if count:
        tf.test.experimental.sync_devices()
        for _ in range(count):
            _given_up.popleft()


def has_gpu(number: int) -> bool:
    """True if TensorFlow has GPU `number` of this machine."""
    return number in _gpus()


def check_has_gpu(number: int) -> None:
    """Check that TensorFlow has GPU `number` of this machine; raise `UsageError` if not."""
    if not has_gpu(number):
        raise UsageError(
            f"The pipeline has outputs on GPU {number}, and TensorFlow has "
            f"{f'only GPUs {sorted(_gpus())}' if _gpus() else 'no GPU'}: return `.cpu()` of the "
            "outputs, or install TensorFlow for GPUs (`pip install 'tensorflow[and-cuda]'`)."
        )


@functools.cache
def _gpus() -> frozenset[int]:
    """Numbers of TensorFlow's GPUs, which are those of CUDA unless some are hidden from it."""
    return frozenset(range(len(tf.config.list_logical_devices("GPU"))))
