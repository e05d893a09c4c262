"""PyTorch's allocator of page-locked memory, for PyTorch without CUDA.

As the real one, it lends memory that is given back to the next who asks, unless a copy was noted to
read it on a stream that is not through; and it notes a copy only where the tensor that is copied
has a storage of its own making.
"""

from __future__ import annotations

import threading
import weakref
from collections import deque
from collections.abc import Callable

import numpy as np
import torch

from tests.support.gpu.runtime import EmulatedRuntime

_PAGE = 4096


class PinnedAllocator:
    """Memory that the emulated GPU knows as page-locked."""

    def __init__(self, runtime: EmulatedRuntime) -> None:
        self._runtime = runtime
        self._lock = threading.Lock()
        """Held while memory is chosen. Memory may come back at any instant, without it."""
        self._idle: list[np.ndarray] = []
        self._back: deque[np.ndarray] = deque()
        self._storages: dict[int, np.ndarray] = {}
        self._read: list[tuple[int, Callable[[], bool]]] = []
        """Addresses that copies read, each with a function that tells whether they are through."""
        self.made: list[np.ndarray] = []

    def allocate(self, size: int) -> torch.Tensor:
        """Memory for so many bytes."""
        whole = -(-size // _PAGE) * _PAGE
        with self._lock:
            while self._back:
                self._idle.append(self._back.popleft())
            found = [b for b in self._idle if len(b) == whole and self._is_free(b)]
            block = found[0] if found else self._made(whole)
            self._idle = [b for b in self._idle if b is not block]
        block[:] = 0xEE
        lent = block[:size].view(_Lent)
        tensor = torch.from_numpy(lent)
        storage = tensor.untyped_storage()._cdata
        self._storages[storage] = block
        weakref.finalize(lent, self._returned, storage, block)
        return tensor

    def _made(self, size: int) -> np.ndarray:
        raw = np.empty(size + _PAGE, np.uint8)
        begin = -raw.ctypes.data % _PAGE
        block = raw[begin : begin + size]
        self._runtime.register_pinned(block.ctypes.data, size)
        self.made.append(block)
        return block

    def _is_free(self, block: np.ndarray) -> bool:
        return all(is_done() for address, is_done in self._read if address == block.ctypes.data)

    def _returned(self, storage: int, block: np.ndarray) -> None:
        del self._storages[storage]
        self._back.append(block)

    def is_pinned(self, tensor: torch.Tensor) -> bool:
        """What `torch.Tensor.is_pinned` says."""
        return bool(tensor.numel()) and self._runtime.is_page_locked(tensor.data_ptr())

    def pin_memory(self, tensor: torch.Tensor) -> torch.Tensor:
        """What `torch.Tensor.pin_memory` makes."""
        made = self.allocate(max(tensor.nbytes, 1))[: tensor.nbytes].view(tensor.dtype)
        return made.view(tensor.shape).copy_(tensor)

    def copy_to(self, address: int, tensor: torch.Tensor, stream: int) -> None:
        """Queue what ``tensor.to(device, non_blocking=True)`` does on a stream."""
        self._runtime.copy(address, tensor.data_ptr(), tensor.nbytes, stream)
        block = self._storages.get(tensor.untyped_storage()._cdata)
        if block is not None:
            self._read.append((block.ctypes.data, self._runtime.record(stream).done))

    def close(self) -> None:
        """Give the memory back."""
        for block in self.made:
            self._runtime.unregister_pinned(block.ctypes.data)


class _Lent(np.ndarray):
    """Memory that a tensor keeps alive."""
