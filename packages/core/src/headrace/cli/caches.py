"""Contents of caches of samples: for ``headrace cache``."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from headrace.cli.finding import CommandError
from headrace.operators.cache.store import kept, ram_folder


class KeptCache(NamedTuple):
    """One cache."""

    folder: Path
    number: int
    unit: str
    size_bytes: int


def found(folders: Sequence[Path] | None) -> list[KeptCache]:
    """The caches in these folders; in memory, and that of remote files, where none are given."""
    for folder in folders or ():
        if not folder.is_dir():
            raise CommandError(f"there is no directory {str(folder)!r}.")
    stores = [store for folder in folders or (ram_folder(),) for store in kept(folder)]
    return [KeptCache(s.folder, s.samples, "samples", s.size_bytes) for s in stores]


def clear(folders: Sequence[Path] | None) -> int:
    """Remove caches; return how many bytes they took."""
    size = 0
    for cache in found(folders):
        shutil.rmtree(cache.folder, ignore_errors=True)
        size += cache.size_bytes
    return size
