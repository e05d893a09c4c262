"""A batch of files that were read all at once: rows and names are made on demand."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from headrace.executor.cpu.batch import BatchBuffer, ShapeStatistics
from headrace.operators.support.schema import Spec
from headrace.tensors.pool import HOST_POOL, HostPool

if TYPE_CHECKING:
    from headrace.kernels.cpu.decode.jpeg_scan import ScannedJpegs
    from headrace.kernels.cpu.reading_threads import FilesRead


_finding = threading.Lock()
"""Held while the rows of a batch are made, by the first thread that asks for them."""


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


class FileNames(Sequence[str]):
    """Files of samples, looked up on demand."""

    __slots__ = ("_entries", "_find", "_found")

    def __init__(self, find: Callable[[Any], list[str]], entries: np.ndarray) -> None:
        self._find = find
        self._entries = entries
        self._found: list[str] | None = None

    def _all(self) -> list[str]:
        found = self._found
        if found is None:
            with _finding:  # two lists would not learn of one another's changes
                found = self._found
                if found is None:
                    found = self._found = self._find(self._entries)
        return found

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        return self._all()[index]

    def __setitem__(self, index: int, source: str) -> None:
        self._all()[index] = source

    def __len__(self) -> int:
        return len(self._entries)
