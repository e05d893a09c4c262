"""Batches that worker processes read, where these can read them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import numpy as np

from headrace.executor.processes.messages import InputColumn
from headrace.executor.processes.shared_pool import SHARED_POOL
from headrace.kernels.cpu.copy_rows import copy_pieces
from headrace.tensors.rows import Rows, pack_rows

if TYPE_CHECKING:
    from headrace.executor.cpu.batch import BatchBuffer

_SMALL_BYTES = 1024
"""Samples of no more travel in the message."""


class WorkerInput:
    """A batch as workers read it, made once for each batch. With `is_read` they read memory of this
    process; else it is copied to shared memory.
    """

    __slots__ = (
        "_copied",
        "_file",
        "_kept",
        "_offsets",
        "_process",
        "_shapes",
        "_values",
        "buffer",
    )

    def __init__(self, buffer: BatchBuffer, *, is_read: bool = False) -> None:
        self.buffer = buffer
        self._values: np.ndarray | None = None
        self._copied: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None
        """Samples to copy to shared memory: addresses, target addresses, and bytes."""
        self._kept: tuple[Rows, ...] = ()
        """Owners of that memory."""
        self._process = 0
        self._file: int | None = None
        dense = buffer.dense
        if dense is not None and dense[:1].nbytes <= _SMALL_BYTES:
            self._values = dense
            return
        rows = _rows(buffer, dense)
        if rows is None:
            self._values = np.empty((len(buffer.rows), 0), buffer.dtype)
            return
        self._shapes, addresses = rows.shapes, rows.addresses
        self._offsets = np.zeros(len(rows), np.int64)
        sizes = rows.sizes * buffer.dtype.itemsize
        # A sample without elements is nowhere, and needs no place.
        filled = sizes > 0
        if not filled.any():
            return
        found = SHARED_POOL.places_of(addresses[filled], sizes[filled])
        if found is not None:
            self._file, self._offsets[filled] = found
            return
        if is_read:
            self._process, self._offsets = os.getpid(), addresses.astype(np.int64)
            self._kept = (rows,)
            return
        copies = pack_rows(self._shapes, buffer.dtype, SHARED_POOL.empty)
        assert copies.flat is not None
        assert copies.begins is not None
        place = SHARED_POOL.place_of(copies.flat)
        self._file = place.file
        self._offsets = place.offset + copies.begins * copies.flat.itemsize
        self._kept = rows, copies
        self._copied = addresses, copies.addresses, sizes

    @property
    def is_read(self) -> bool:
        """True if samples lie in memory of this process alone."""
        return bool(self._process)

    @property
    def is_copied(self) -> bool:
        """True if workers cannot read some samples until `copy` has copied them."""
        return self._copied is not None

    def copy(self, samples: slice) -> None:
        """Copy samples that workers could not read, before they are asked to.

        Each thread copies those of its own task, so that all of them share the work.
        """
        if self._copied is not None:
            copy_pieces(*(column[samples] for column in self._copied))

    def whole(self) -> InputColumn:
        """Return the addresses of all samples."""
        dtype, sources = self.buffer.dtype, self.buffer.sources
        if self._values is not None:
            return InputColumn(self._values, None, None, None, dtype, sources)
        places = self._offsets, self._shapes
        return InputColumn(None, self._file, *places, dtype, sources, self._process)


def _rows(buffer: BatchBuffer, dense: np.ndarray | None) -> Rows | None:
    """The samples of a batch; `None` if there is none."""
    if dense is not None and dense.flags.c_contiguous:
        return Rows.of_array(dense)
    # The place of a sample that failed or took another branch is not read.
    any_row = next((row for row in buffer.rows if row is not None), None)
    if any_row is None:
        return None
    return Rows([any_row if row is None else row for row in buffer.rows])
