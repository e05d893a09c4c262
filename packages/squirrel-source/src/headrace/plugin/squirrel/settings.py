"""Limits on concurrent work, where the user sets none."""

from __future__ import annotations

import os

from headrace.errors import ArgumentValueError

LANES = 8
"""Number of shards read side by side for "interleave" and "shuffle". It is part of the order of the
samples, so it depends on nothing.
"""
READAHEAD_BYTES = 512 << 20
"""Number of bytes decoded ahead."""
SHUFFLE_BUFFER = 1024
"""Size of the shuffle buffer, in samples."""
_MOST_WORKERS = 16


def worker_count(num_workers: int | None) -> int:
    """`num_workers`, or the number of processors that this process may use."""
    if num_workers is None:
        try:
            found = len(os.sched_getaffinity(0))
        except AttributeError:  # macOS, Windows
            found = os.cpu_count() or 1
        return min(found, _MOST_WORKERS)
    return at_least("num_workers", num_workers, 1)


def at_least(name: str, value: int, least: int) -> int:
    """`value`, if it is an integer of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ArgumentValueError(f"`{name}` is {value!r}; it must be an integer, at least {least}.")
    return value
