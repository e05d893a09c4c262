"""Number of samples in each shard: counted once, and remembered between runs."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from headrace.config import cache_folder
from headrace.errors import ArgumentValueError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headrace.plugin.squirrel.dataset import ShardFolder


def count_samples(folder: ShardFolder, workers: int) -> tuple[list[str], list[int]]:
    """Keys of the shards and how many samples each has.

    A shard that cannot be read to its end counts one more than it has good samples, so that
    readers meet the error of the bad one. What is counted is remembered, until the files
    change; those of memory are not, as nothing tells when they do.
    """
    listing = folder.listing()
    keys = [name.removesuffix(".gz") for name, _ in listing]
    file = _remembered_at(folder, listing)
    counts = _remembered(file, len(keys))
    if counts is None:
        with ThreadPoolExecutor(workers, "headrace-squirrel-count") as pool:
            results = list(pool.map(folder.count, keys))
        counts = [count + (error is not None) for count, error in results]
        if not any(error for _, error in results):
            _remember(file, counts)
    if not sum(counts):
        raise ArgumentValueError(
            f"The data set at {folder.url!r} is empty: its {len(keys)} shards hold no samples."
        )
    return keys, counts


def remembered_counts(folder: ShardFolder, keys: Sequence[str]) -> list[int] | None:
    """Remembered number of samples in each of the shards `keys`; `None` where it was not counted
    yet.
    """
    listing = folder.listing()
    if [name.removesuffix(".gz") for name, _ in listing] != list(keys):
        return None
    return _remembered(_remembered_at(folder, listing), len(keys))


def _remembered_at(folder: ShardFolder, listing: Sequence[tuple[str, str]]) -> Path | None:
    if not all(version for _, version in listing) or folder.url.startswith("memory://"):
        return None
    counts = cache_folder("squirrel")
    if counts is None:
        return None
    place = folder.url if "://" in folder.url else os.path.abspath(folder.url)
    text = json.dumps([1, place, listing])
    return counts / f"{hashlib.sha256(text.encode()).hexdigest()[:32]}.json"


def _remembered(file: Path | None, count: int) -> list[int] | None:
    if file is None:
        return None
    try:
        counts = json.loads(file.read_text())["counts"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    valid = isinstance(counts, list) and all(isinstance(n, int) and n >= 0 for n in counts)
    return counts if valid and len(counts) == count else None


def _remember(file: Path | None, counts: list[int]) -> None:
    if file is None:
        return
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=file.parent, delete=False) as written:
            json.dump({"counts": counts}, written)
        os.replace(written.name, file)
    except OSError:
        pass  # a disk that is full or read-only costs time next time, and nothing else
