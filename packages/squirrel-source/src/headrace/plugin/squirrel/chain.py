"""Streams on top of a driver: Squirrel's steps, moved onto a faster reader of the shards.

``driver.get_iter().map(f).filter(g).batched(n)`` is a chain of objects, each of which knows the one
before it as its `source`. At its head are the keys, a step that opens each shard, and one that
joins what comes out of them. These two are replaced; all others are Squirrel's own, and so is what
they do with the samples.
"""

from __future__ import annotations

import copy
import functools
import sys
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from headrace.plugin.squirrel.dataset import ShardFolder
from headrace.plugin.squirrel.order import ShardSegment, emission
from headrace.plugin.squirrel.read_ahead import SegmentReader
from headrace.plugin.squirrel.recognise import folder_of_driver

_HARMLESS = {"compression": "gzip", "mode": "rb"}
"""Arguments of `driver.get` that say what is done anyway."""
_HARMLESS_LIMITS = ("max_buffer_size", "strict_map_key", "read_size", "max_bin_len")
"""Limits of msgpack's that do not exist here."""


class ParallelShards:
    """The samples of shards, one shard after the other, read by threads."""

    def __init__(
        self,
        folder: ShardFolder,
        keys: Iterable[str],
        *,
        workers: int,
        readahead_bytes: int,
        allow_pickle: bool,
    ) -> None:
        self.folder = folder
        self._keys = keys
        self._workers = workers
        self._readahead_bytes = readahead_bytes
        self._allow_pickle = allow_pickle

    def __iter__(self) -> Iterator[Any]:
        reader = SegmentReader(
            map(ShardSegment, self._keys),
            open_shard=functools.partial(self.folder.open, allow_pickle=self._allow_pickle),
            convert=_as_it_is,
            lanes=1,
            workers=self._workers,
            readahead_bytes=self._readahead_bytes,
        )
        try:
            for slot, number in emission(reader, lanes=1, buffer=1, seed=0, epoch=0):
                yield reader.take(slot, number)
        finally:
            reader.close()


def _as_it_is(sample: Any, shard: str, number: int) -> tuple[Any, int]:
    values = sample.values() if isinstance(sample, dict) else (sample,)
    size = 0
    for value in values:
        if isinstance(value, np.ndarray):
            size += value.nbytes
        else:
            size += len(value) if isinstance(value, (bytes, str)) else 64
    return sample, size


def with_parallel_head(
    stream: Any, *, workers: int, readahead_bytes: int, allow_pickle: bool
) -> tuple[Any, ParallelShards] | None:
    """`stream` with its shards read in parallel, and what reads them.

    `None` if it is no such chain, or has steps that are not Squirrel's own: those may depend on
    what is replaced.
    """
    steps = []
    node = stream
    while True:
        if not _is_step(node):
            return None
        head = _head(node, workers, readahead_bytes, allow_pickle)
        if head is not None:
            break
        steps.append(node)
        node = node.source
    changed: Any = head
    for step in reversed(steps):
        # A copy: a step may keep what it is doing in itself, and then serves one iterator only.
        changed = _on_top_of(step, changed)
    return changed, head


def steps_of(stream: Any) -> Iterator[Any]:
    """`stream`, the step before it, and so on, as far as they are known."""
    node = stream
    while node is not None and hasattr(node, "source"):
        yield node
        node = node.source


def is_batched(stream: Any) -> bool:
    """True if the last step of `stream` makes batches."""
    return _does(stream, "batched_")


def _is_step(node: Any) -> bool:
    return type(node).__module__.startswith("squirrel.iterstream.") and hasattr(node, "source")


def _on_top_of(step: Any, source: Any) -> Any:
    copied = copy.copy(step)
    copied.source = source
    return copied


def _does(node: Any, function: str) -> bool:
    """True if `node` is Squirrel's step that applies `function`."""
    own = getattr(sys.modules.get("squirrel.iterstream.iterators"), function, None)
    return _is_step(node) and own is not None and getattr(node, "f", None) is own


def _head(
    node: Any, workers: int, readahead_bytes: int, allow_pickle: bool
) -> ParallelShards | None:
    """Make the reader that replaces `node`, if `node` joins the contents of shards."""
    if not _does(node, "flatten_"):
        return None
    opener = node.source
    async_map = getattr(sys.modules.get("squirrel.iterstream.base"), "_AsyncMap", None)
    if async_map is not None and type(opener) is async_map:
        callback = opener.callback
    elif _does(opener, "map_") and len(opener.args) == 1:
        callback = opener.args[0]
    else:
        return None
    if not isinstance(callback, functools.partial) or callback.args:
        return None
    if not _only_harmless(callback.keywords):
        return None
    driver = getattr(callback.func, "__self__", None)
    if driver is None or getattr(callback.func, "__name__", "") != "get":
        return None
    folder = folder_of_driver(driver)
    if folder is None:
        return None
    return ParallelShards(
        folder,
        opener.source,
        workers=workers,
        readahead_bytes=readahead_bytes,
        allow_pickle=allow_pickle,
    )


def _only_harmless(keywords: dict[str, Any]) -> bool:
    for name, value in keywords.items():
        if name == "unpacker_kwargs":
            if not set(value or ()) <= set(_HARMLESS_LIMITS):
                return False
        elif _HARMLESS.get(name) != value:
            return False
    return True
