"""Decoded images that stay in device memory, so that later epochs need not decode them again.

A cache belongs to one operator, one thread and one stream, whose order makes what one batch has
stored there for the next. Nothing is ever thrown out: the memory is handed out once, from its
begin to its end.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from headrace.kernels.gpu.strided_copy import gather
from headrace.tensors.gpu.batch import DeviceBatch
from headrace.tensors.gpu.queue import Queue

_ALIGNMENT = 256
_BYTE = np.dtype(np.uint8)


@dataclass(frozen=True, slots=True)
class CacheOptions:
    """Options of the cache for decoded images."""

    size_bytes: int
    threshold_bytes: int = 0
    """Smaller images are not cached."""
    largest: bool = False
    """Cache the largest images, found in a first epoch, in place of those that come first."""
    batch_copy: bool = True
    """Copy all cached images of a batch by one kernel, rather than one by one."""
    debug: bool = False
    """Print when the cache begins to be used and when it is full."""


class Cached(NamedTuple):
    """An image in the cache."""

    address: int
    shape: tuple[int, int, int]
    size_bytes: int


class CopyExtent(NamedTuple):
    """Memory of so many bytes."""

    source: int
    target: int
    size_bytes: int


class DecodedCache:
    """The cache of one operator."""

    def __init__(self, queue: Queue, options: CacheOptions) -> None:
        self.stream = queue.stream
        self._options = options
        self._memory = queue.empty([[options.size_bytes]], _BYTE)
        self._begin = int(self._memory.pointers[0])
        self._used = 0
        self._images: dict[str, Cached] = {}
        self._sizes: dict[str, int] = {}
        """Of all images seen in the first epoch, where the largest are to be found."""
        self._chosen: set[str] | None = None
        self._told: set[str] = set()

    def find(self, source: str) -> Cached | None:
        """The image of a file, if it is here."""
        found = self._images.get(source)
        if found is not None and self._options.debug:
            self._tell("is used for the first time")
        return found

    def fetch(self, queue: Queue, images: Sequence[Cached], targets: Sequence[int]) -> None:
        """Queue copies of cached images to these addresses."""
        self._copy(
            queue,
            [
                CopyExtent(image.address, target, image.size_bytes)
                for image, target in zip(images, targets, strict=True)
            ],
        )

    def store(
        self, queue: Queue, decoded: Iterable[tuple[str, int, tuple[int, int, int], int]]
    ) -> None:
        """Queue copies of images into the cache, of those that are to be there.

        `decoded`: for each image the file it is from, its address, its shape and its size in bytes.
        """
        pieces = []
        for source, address, shape, size in decoded:
            if not source or source in self._images or not self._wants(source, size):
                continue
            if self._used + size > self._options.size_bytes:
                if self._options.debug:
                    self._tell("is full")
                continue
            place = self._begin + self._used
            self._used += -(-size // _ALIGNMENT) * _ALIGNMENT
            self._images[source] = Cached(place, shape, size)
            pieces.append(CopyExtent(address, place, size))
        self._copy(queue, pieces)

    def _wants(self, source: str, size: int) -> bool:
        if size < self._options.threshold_bytes:
            return False
        if not self._options.largest:
            return True
        if self._chosen is None:
            if source not in self._sizes:
                self._sizes[source] = size
                return False
            self._chosen = self._choose()
        return source in self._chosen

    def _choose(self) -> set[str]:
        """The largest images that have been seen, as many as there is room for."""
        chosen = set()
        room = self._options.size_bytes
        for source, size in sorted(self._sizes.items(), key=lambda item: -item[1]):
            size = -(-size // _ALIGNMENT) * _ALIGNMENT
            if size <= room:
                room -= size
                chosen.add(source)
        self._sizes.clear()
        return chosen

    def _copy(self, queue: Queue, pieces: list[CopyExtent]) -> None:
        if not pieces:
            return
        if not self._options.batch_copy:
            for source, target, size in pieces:
                queue.runtime.copy(target, source, size, queue.stream)
            return
        sources, targets, sizes = np.array(pieces, np.int64).T
        shapes = sizes[:, np.newaxis]
        there = DeviceBatch(queue.runtime, (), targets.astype(np.uint64), shapes, _BYTE)
        gather(queue, sources.astype(np.uint64), sizes, there)

    def _tell(self, what: str) -> None:
        if what not in self._told:
            self._told.add(what)
            sys.stderr.write(
                f"headrace: the cache of decoded images {what}: {len(self._images)} images, "
                f"{self._used} of {self._options.size_bytes} bytes.\n"
            )


class _ThreadCaches(threading.local):
    """The caches that one thread uses."""

    def __init__(self) -> None:
        self.caches: WeakKeyDictionary[Any, DecodedCache] = WeakKeyDictionary()


_of_thread = _ThreadCaches()


def cache_of(owner: object, queue: Queue, options: CacheOptions) -> DecodedCache:
    """The cache of the operator `owner` in the calling thread, for work on the queue's stream."""
    found = _of_thread.caches.get(owner)
    if found is None or found.stream != queue.stream:
        found = _of_thread.caches[owner] = DecodedCache(queue, options)
    return found
