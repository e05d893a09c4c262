"""Batches that worker processes read, where these can read them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from penstock.executor.processes.messages import Input
from penstock.executor.processes.shared_pool import SHARED_POOL
from penstock.kernels.cpu.copy_rows import copy_pieces
from penstock.tensors.rows import Rows, pack_rows

if TYPE_CHECKING:
    from penstock.executor.cpu.batch import BatchBuffer

_SMALL_BYTES = 1024
"""Samples of no more travel in the message."""


class Carried:
    """A batch that workers read, where they can read it. Once for each batch."""

    __slots__ = ("_copied", "_file", "_offsets", "_shapes", "_values", "buffer")

    def __init__(self, buffer: BatchBuffer) -> None:
        self.buffer = buffer
        self._values: np.ndarray | None = None
        self._copied: tuple[Rows, Rows, np.ndarray] | None = None
        """Samples that are to be copied to shared memory, where to, and their bytes."""
        self._file: int | None = None
        dense = buffer.dense
        if dense is not None and dense[:1].nbytes <= _SMALL_BYTES:
            self._values = dense
            return
        rows: list[np.ndarray] = buffer.rows  # type: ignore[assignment]
        # Nobody reads what is in the place of a sample that has failed or took another branch.
        any_row = next((row for row in rows if row is not None), None)
        if any_row is None:
            self._values = np.empty((len(rows), 0), buffer.dtype)
            return
        rows = [any_row if row is None else row for row in rows]
        self._shapes = np.array([row.shape for row in rows], np.int64).reshape(len(rows), -1)
        self._offsets = np.zeros(len(rows), np.int64)
        # A sample without elements is nowhere, and needs no place.
        filled = [k for k, row in enumerate(rows) if row.size]
        if not filled:
            return
        found = SHARED_POOL.places_of([rows[k] for k in filled])
        if found is not None:
            self._file, self._offsets[filled] = found
            return
        copies = pack_rows(self._shapes, any_row.dtype, SHARED_POOL.empty)
        assert copies.flat is not None
        assert copies.begins is not None
        place = SHARED_POOL.place_of(copies.flat)
        self._file = place.file
        self._offsets = place.offset + copies.begins * copies.flat.itemsize
        origins = Rows(rows)
        _ = origins.addresses  # found by one thread: rows with gaps are packed for it
        self._copied = origins, copies, copies.sizes * copies.flat.itemsize

    def see_to(self, samples: slice) -> None:
        """Copy samples that workers could not read, before they are asked to.

        Each thread copies those of its own task, so that all of them share the work.
        """
        if self._copied is not None:
            rows, copies, sizes = self._copied
            copy_pieces(rows.addresses[samples], copies.addresses[samples], sizes[samples])

    def whole(self) -> Input:
        """Where all samples are."""
        dtype, sources = self.buffer.dtype, self.buffer.sources
        if self._values is not None:
            return Input(self._values, None, None, None, dtype, sources)
        return Input(None, self._file, self._offsets, self._shapes, dtype, sources)
