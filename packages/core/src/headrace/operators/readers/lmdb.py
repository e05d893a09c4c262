"""Data bases of LMDB as an index: every value is an extent of the file that the data base is in."""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np

from headrace.errors import ArgumentValueError, NotYetSupportedError
from headrace.kernels.cpu.lmdb_pages import read_extents
from headrace.operators.readers.index import FileIndex
from headrace.operators.readers.storage import is_remote, join


class LmdbIndex(FileIndex):
    """The entries of data bases, one data base after the other, in the order of their keys."""

    def __init__(self, folders: Sequence[str]) -> None:
        self._folders = list(folders)
        self._keys: list[bytes] = []
        paths, files, offsets, sizes = [], [], [], []
        for number, folder in enumerate(folders):
            if is_remote(folder):
                raise NotYetSupportedError(
                    f"`path`={folder!r}: data bases of LMDB are read from local disks only. Copy "
                    "it to one."
                )
            path = join(folder, "data.mdb").removeprefix("file://")
            try:
                found = read_extents(path)
            except (OSError, ValueError) as error:
                raise ArgumentValueError(
                    f"`path`={folder!r} is no folder with a data base of LMDB, or it is damaged: "
                    f"{error}."
                ) from error
            paths.append(path)
            self._keys += found.keys
            files.append(np.full(len(found.keys), number))
            offsets.append(found.offsets)
            sizes.append(found.sizes)
        if not self._keys:
            raise ArgumentValueError(f"`path`={self._folders!r} has no entries.")
        places = [np.concatenate(each) for each in (files, offsets, sizes)]
        super().__init__(paths, files=places[0], offsets=places[1], sizes=places[2])

    def keys_of(self, entries: np.ndarray) -> list[str]:
        """The keys of entries."""
        return [os.fsdecode(self._keys[entry]) for entry in entries.tolist()]

    def source(self, entry: int) -> str:
        """The data base and the key of an entry."""
        key = self._keys[entry].decode(errors="backslashreplace")
        return f"{self._folders[self._place(entry)[0]]} at key {key}"
