"""Contents of caches of samples: for ``headrace cache``."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from headrace.cli.finding import CommandError
from headrace.config import file_cache_folder
from headrace.operators.cache.store import kept, ram_folder
from headrace.operators.readers import kept_index
from headrace.operators.readers.file_cache import kept_files, remove_files


class KeptCache(NamedTuple):
    """One cache."""

    folder: Path
    number: int
    unit: str
    size_bytes: int


def found(folders: Sequence[Path] | None) -> list[KeptCache]:
    """The caches in these folders; in memory, of indexes and of remote files if none are given."""
    for folder in folders or ():
        if not folder.is_dir():
            raise CommandError(f"there is no directory {str(folder)!r}.")
    stores = [store for folder in folders or (ram_folder(),) for store in kept(folder)]
    caches = [KeptCache(s.folder, s.samples, "samples", s.size_bytes) for s in stores]
    kept_here = [] if folders else kept_index.kept_files()
    if kept_here:
        size = sum(file.stat().st_size for file in kept_here)
        caches.append(KeptCache(kept_here[0].parent, len(kept_here), "indexes", size))
    files = None if folders else file_cache_folder()
    if files is not None:
        kept_there = kept_files(files)
        caches.append(KeptCache(files, kept_there.number, "files", kept_there.size_bytes))
    return caches


def clear(folders: Sequence[Path] | None) -> int:
    """Remove caches; return how many bytes they took."""
    size = 0
    for cache in found(folders):
        if cache.unit == "files":
            remove_files(cache.folder)
        else:
            shutil.rmtree(cache.folder, ignore_errors=True)
        size += cache.size_bytes
    return size
