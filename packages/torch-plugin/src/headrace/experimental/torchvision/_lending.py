"""Memory of batches, which is used again when nobody looks at it any more.

Fresh memory costs more than what is done to it: the kernel hands it out page by page. A worker
keeps a few segments without a name, and lends them with the batches that it sends; the main process
maps each once, and marks it as free, in a table that both see, when the last tensor of it is gone.
"""

from __future__ import annotations

import itertools
import os
import weakref
from multiprocessing.reduction import DupFd
from typing import Any

import numpy as np
import torch
from torch.utils.data import get_worker_info

from headrace.executor.sources.segments import SharedSegment, open_segment

_LEAST_BYTES = 1 << 16
_keys = itertools.count()
_lenders: weakref.WeakValueDictionary[int, Lender] = weakref.WeakValueDictionary()


class Lender:
    """Segments of all workers of one iterator, `each` of which has so many."""

    def __init__(self, workers: int, each: int) -> None:
        self._key = next(_keys)
        self._lent = torch.zeros((max(workers, 1), each), dtype=torch.uint8).share_memory_()  # type: ignore[no-untyped-call]
        self._segments: dict[tuple[int, int], SharedSegment] = {}
        self._files: dict[int, int] = {}
        _lenders[self._key] = self

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_segments": {}, "_files": {}}

    def take(self, shape: tuple[int, ...], dtype: torch.dtype) -> Lent | None:
        """Memory for a batch of this worker; None if all is lent, or if it is not worth while."""
        size = torch.Size(shape).numel() * dtype.itemsize
        if size < _LEAST_BYTES:
            return None
        info = get_worker_info()
        worker = 0 if info is None else info.id
        marks = self._lent[worker].numpy()
        slot = int(marks.argmin())
        if marks[slot]:
            return None
        file = None
        known = self._segments.get((worker, slot))
        if known is None or known.size < size:
            try:
                file = open_segment(size)
            except MemoryError:
                return None
            if slot in self._files:
                os.close(self._files[slot])
            self._files[slot] = file
            self._segments[worker, slot] = SharedSegment(slot, file, size)
        marks[slot] = 1
        return Lent(self, (worker, slot), file, shape, dtype)

    def give_back(self, lent: Lent) -> None:
        """Take back memory that is not sent."""
        self._lent[lent.place] = 0

    def add(self, place: tuple[int, int], file: int, size: int) -> None:
        """Map a segment of a worker's, and close the file."""
        try:
            self._segments[place] = SharedSegment(place[1], file, size)
        finally:
            os.close(file)

    def tensor(self, place: tuple[int, int], shape: tuple[int, ...], dtype: torch.dtype) -> Any:
        """A tensor in a segment, which is free again when its memory is not referred to."""
        bytes_ = self.view(place, shape, dtype)
        end = weakref.finalize(bytes_, _end, self._lent, place, os.getpid())
        end.atexit = False
        return torch.from_numpy(bytes_).view(dtype).view(shape)

    def view(
        self, place: tuple[int, int], shape: tuple[int, ...], dtype: torch.dtype
    ) -> np.ndarray:
        """The bytes of a tensor in a segment."""
        size = torch.Size(shape).numel() * dtype.itemsize
        return np.ndarray((size,), np.uint8, self._segments[place].memory)


def _end(lent: torch.Tensor, place: tuple[int, int], process: int) -> None:
    if os.getpid() == process:  # not in a fork of it
        lent[place] = 0


class Lent:
    """Memory of a batch in a worker; unpickled in the main process, it is a tensor."""

    def __init__(
        self,
        lender: Lender,
        place: tuple[int, int],
        file: int | None,
        shape: tuple[int, ...],
        dtype: torch.dtype,
    ) -> None:
        self._lender, self.place, self._file = lender, place, file
        self._shape, self._dtype = shape, dtype
        self.tensor: torch.Tensor = (
            torch.from_numpy(lender.view(place, shape, dtype)).view(dtype).view(shape)
        )

    def batch(self) -> Any:
        """Content of the batch: in the main process a tensor."""
        if get_worker_info() is None:
            return self._lender.tensor(self.place, self._shape, self._dtype)
        return self

    def __reduce__(self) -> Any:
        file = None if self._file is None else DupFd(self._file)
        size = self._lender._segments[self.place].size
        return _borrowed, (self._lender._key, self.place, file, size, self._shape, self._dtype)


def _borrowed(
    key: int,
    place: tuple[int, int],
    file: Any,
    size: int,
    shape: tuple[int, ...],
    dtype: torch.dtype,
) -> Any:
    lender = _lenders.get(key)
    if lender is None:  # the iterator has ended, and nobody gets this
        return torch.empty(0, dtype=dtype)
    if file is not None:
        lender.add(place, file.detach(), size)
    return lender.tensor(place, shape, dtype)
