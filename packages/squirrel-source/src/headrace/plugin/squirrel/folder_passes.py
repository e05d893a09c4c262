"""The epochs of a folder of shards, or of one part of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headrace.errors import ArgumentValueError, UsageError
from headrace.plugin.squirrel import settings
from headrace.plugin.squirrel.counts import count_samples, remembered_counts
from headrace.plugin.squirrel.dataset import ShardFolder
from headrace.plugin.squirrel.epoch import Pass, ReadSettings
from headrace.plugin.squirrel.fields import FieldReader, field_names


class FolderPasses:
    """The epochs of a folder of shards."""

    counted = True

    def __init__(
        self,
        folder: ShardFolder,
        *,
        fields: Any,
        dtype: Any,
        schema: Mapping[str, Any] | None,
        on_mismatch: str,
        workers: int,
        readahead_bytes: int,
        allow_pickle: bool,
        order: str,
        buffer: int,
        seed: int,
        part: int,
        parts: int,
    ) -> None:
        first = folder.first_sample(allow_pickle=allow_pickle)
        reader = FieldReader(
            field_names(fields, first), dtype=dtype, schema=schema, on_mismatch=on_mismatch
        )
        if on_mismatch != "skip":
            reader.learn(first)
        self.names = reader.names
        self.single = isinstance(fields, str)
        self._skips = on_mismatch == "skip"
        self.part, self.parts = part, parts
        self._counts: list[int] | None = None
        self._reading = ReadSettings(
            folder=folder,
            keys=folder.keys(),
            fields=frozenset(reader.names),
            convert=reader,
            workers=workers,
            readahead_bytes=readahead_bytes,
            allow_pickle=allow_pickle,
            lanes=1 if order == "sequential" else settings.LANES,
            shuffled=order == "shuffle",
            buffer=buffer if order == "shuffle" else 1,
            keys_seed=seed,
            buffer_seed=seed,
        )

    def counts(self) -> list[int]:
        """Number of samples in each shard."""
        if self._counts is None:
            keys, counts = count_samples(self._reading.folder, self._reading.workers)
            if keys != self._reading.keys:
                raise UsageError(
                    f"The shards in {self._reading.folder.url!r} have changed since the source "
                    "was made."
                )
            self._counts = counts
        return self._counts

    def known_size(self) -> int | None:
        """`size`, if that is known without reading the shards, and no sample will be skipped."""
        if self._counts is None and not self._skips:
            self._counts = remembered_counts(self._reading.folder, self._reading.keys)
        return None if self._skips or self._counts is None else self.size()

    def size(self) -> int:
        """Number of samples of this part."""
        total = sum(self.counts())
        if total < self.parts:
            raise ArgumentValueError(
                f"There are {total} samples, fewer than the {self.parts} parts that `num_shards` "
                "asks for. Every part needs at least one."
            )
        return (self.part + 1) * total // self.parts - self.part * total // self.parts

    def sizes(self) -> tuple[int, int]:
        """Number of samples of the smallest and of the largest part."""
        total = sum(self.counts())
        return total // self.parts, -(-total // self.parts)

    def open_at(self, epoch: int, position: int) -> tuple[Pass, int]:
        """The samples of `epoch` from `position` on, or before it, and how far before."""
        if self._skips:
            return self.open(epoch, 0), position
        return self.open(epoch, position), 0

    def open(self, epoch: int, position: int) -> Pass:
        """The samples of `epoch` from `position` on."""
        if self.parts > 1:
            self.size()
        needed = self.parts > 1 or position > 0
        counts = self.counts() if needed else self._counts
        return Pass(self._reading, epoch, self.part, self.parts, counts, position)
