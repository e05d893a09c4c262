"""A batch of files that were read all at once: rows are made on demand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from headrace.executor.cpu.batch import BatchBuffer
from headrace.executor.cpu.shape_statistics import ShapeStatistics
from headrace.operators.support.schema import Spec
from headrace.tensors.pool import HOST_POOL, HostPool

if TYPE_CHECKING:
    from headrace.kernels.cpu.decode.jpeg_scan import ScannedJpegs
    from headrace.kernels.cpu.reading_threads import FilesRead


class FilesBatch(BatchBuffer):
    """A batch of which a decoder wants to know where in memory each file lies, and no more."""

    __slots__ = ("_files", "_found")

    def __init__(
        self, files: FilesRead, spec: Spec, history: ShapeStatistics, pool: HostPool = HOST_POOL
    ) -> None:
        self._found: list[np.ndarray | None] | None = None
        self._files = files
        super().__init__(len(files.sizes), spec, history, pool)
        self._row_shape = (-1,)  # files of one length are no reason to keep place for all

    @property
    def scanned(self) -> ScannedJpegs | None:  # type: ignore[override]
        """Parsed JPEG headers, if they were read together with the files; `None` if the files may
        have moved since.
        """
        return None if self._found is not None or self._files.unread else self._files.scanned

    @property
    def rows(self) -> list[np.ndarray | None]:
        """The samples."""
        found = self._found
        if found is None:
            with self._lock:
                found = self._found
                if found is None:
                    found = self._found = self._files.rows()
        return found

    @rows.setter
    def rows(self, rows: list[np.ndarray | None]) -> None:
        self._found = rows

    def adopt_rows(self, indices: Sequence[int], values: Sequence[np.ndarray]) -> None:
        """Take `values` for these samples as they are."""
        super().adopt_rows(indices, list(values))
