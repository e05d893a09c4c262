"""Batches that worker processes read, where these can read them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from penstock.executor.processes.messages import Input
from penstock.executor.processes.shared_pool import SHARED_POOL
from penstock.tensors.rows import pack_rows

if TYPE_CHECKING:
    from penstock.executor.cpu.batch import BatchBuffer

_SMALL_BYTES = 1024
"""Samples of no more travel in the message."""


class Carried:
    """A batch that workers read, where they can read it. Once for each batch."""

    __slots__ = ("_copies", "_file", "_offsets", "_shapes", "_values", "buffer")

    def __init__(self, buffer: BatchBuffer) -> None:
        self.buffer = buffer
        self._values: np.ndarray | None = None
        self._copies: dict[int, tuple[np.ndarray, np.ndarray]] = {}
        """Samples that are still to be copied to shared memory, and where to."""
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
        if filled:
            self._file, self._offsets[filled] = self._places(filled, [rows[k] for k in filled])

    def _places(self, indices: list[int], rows: list[np.ndarray]) -> tuple[int, np.ndarray]:
        """Where samples are, or will be when they have been copied to shared memory."""
        found = SHARED_POOL.places_of(rows)
        if found is None:
            shapes = self._shapes[indices]
            copies = pack_rows(shapes, rows[0].dtype, SHARED_POOL.empty).rows
            self._copies = dict(zip(indices, zip(rows, copies, strict=True), strict=True))
            found = SHARED_POOL.places_of(copies)
            assert found is not None
        return found

    def see_to(self, indices: list[int]) -> None:
        """Copy samples that workers could not read, before they are asked to.

        Each thread copies those of its own task, so that all of them share the work.
        """
        if self._copies:
            for index in indices:
                pair = self._copies.get(index)
                if pair is not None:
                    np.copyto(pair[1], pair[0])

    def whole(self) -> Input:
        """Where all samples are."""
        dtype, sources = self.buffer.dtype, self.buffer.sources
        if self._values is not None:
            return Input(self._values, None, None, None, dtype, sources)
        return Input(None, self._file, self._offsets, self._shapes, dtype, sources)
