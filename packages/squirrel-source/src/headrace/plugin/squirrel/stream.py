"""Composables as they are: for `external_source`, and as the data of `source`."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from headrace.errors import ArgumentValueError, DataTypeError, UsageError
from headrace.plugin.squirrel import settings
from headrace.plugin.squirrel.chain import ParallelShards, is_batched, steps_of, with_parallel_head
from headrace.plugin.squirrel.fields import FieldReader, field_names
from headrace.plugin.squirrel.recognise import driver_of, is_composable

_live: weakref.WeakKeyDictionary[Any, weakref.ref[_IteratorToken]] = weakref.WeakKeyDictionary()


class _IteratorToken:
    """Lives as long as an iterator."""


class ComposableStream:
    """A Composable, to be iterated over any number of times.

    Its shards are read in parallel where that is possible without any other difference, and what
    Squirrel lets pass in silence is said.
    """

    def __init__(
        self,
        composable: Any,
        *,
        workers: int | None = None,
        readahead_bytes: int = settings.READAHEAD_BYTES,
        allow_pickle: bool = False,
    ) -> None:
        self._composable = composable
        self._options = {
            "workers": settings.worker_count(workers),
            "readahead_bytes": readahead_bytes,
            "allow_pickle": allow_pickle,
        }
        self._passes = 0
        self._given = 0

    def __iter__(self) -> Iterator[Any]:
        found = with_parallel_head(self._composable, **self._options)  # type: ignore[arg-type]
        if found is None:
            items, head = self._composable, None
        else:
            items, head = found
        token = _IteratorToken()
        if head is None:
            self._claim(token)
        count = 0
        for item in items:
            count += 1
            self._given = max(self._given, count)
            yield item
        if not count:
            raise self._nothing(head)
        self._passes += 1

    def _claim(self, token: _IteratorToken) -> None:
        """Make sure that no other iterator takes what belongs to this one."""
        for step in steps_of(self._composable):
            if not hasattr(step, "queue"):
                continue
            other = _live.get(step)
            if other is not None and other() is not None:
                raise UsageError(
                    "Two iterators of one Composable are in use at once, and its `async_map` keeps "
                    "one queue for both: each would lose the samples that the other one takes. "
                    "Make a Composable (`driver.get_iter()`) for each pipeline."
                )
            _live[step] = weakref.ref(token)

    def _nothing(self, head: ParallelShards | None) -> Exception:
        if self._given:
            return UsageError(
                f"The Composable gave {self._given} items the first time and none now: it was made "
                "from an iterator or generator, which can be used only once. Make it from a "
                "function, or a list, that can start over."
            )
        if head is not None:
            try:
                head.folder.listing()  # says what is wrong: no folder, or no shards
            except ArgumentValueError as error:
                return error
            return ArgumentValueError(
                f"The data set at {head.folder.url!r} is empty: nothing comes out of its shards, "
                "or past what is after them."
            )
        return ArgumentValueError("The Composable is empty: it gave not a single item.")


def plain(composable: Any) -> Any:
    """Replacement for a Composable given to `external_source`; other sources as they are."""
    return _Plain(composable) if is_composable(composable) else composable


class _Plain:
    """A Composable whose items go into a pipeline as they are."""

    def __init__(self, composable: Any) -> None:
        self._stream = ComposableStream(composable)

    def __iter__(self) -> Iterator[Any]:
        for item in self._stream:
            _check_item(item)
            yield item


def _check_item(item: Any) -> None:
    """Check that an item has no dictionaries or text in it, which are no tensors."""
    one = item
    if isinstance(item, (list, tuple)):
        one = next((v for v in item if isinstance(v, (dict, str))), None)
    if isinstance(one, dict):
        names = list(one)
        raise DataTypeError(
            f"The Composable gives dictionaries, with the keys {names[:8]!r}, where a pipeline "
            "needs arrays. Name the values you want: "
            f"`source=headrace.plugin.squirrel.source(composable, fields={names[:2]!r})`; or make "
            'tuples of them: `.map(lambda sample: (sample["image"], sample["label"]))`.'
        )
    if isinstance(one, str):
        raise DataTypeError(
            f"The Composable gives text ({one[:40]!r}), and a pipeline works on numbers. Leave it "
            "out, or make numbers of it in a `map`."
        )


class StreamPasses:
    """The epochs of a Composable, or of a driver that has no shards to be read without it."""

    counted = False
    parts = 1

    def __init__(
        self,
        data: Any,
        *,
        fields: Any,
        dtype: Any,
        schema: Mapping[str, Any] | None,
        on_mismatch: str,
        workers: int,
        readahead_bytes: int,
        allow_pickle: bool,
    ) -> None:
        composable = data
        if not is_composable(data):
            driver = driver_of(data)
            composable = data if driver is None else driver.get_iter()
        if is_batched(composable):
            raise ArgumentValueError(
                "The Composable ends in `.batched(...)`, but this source makes batches itself. "
                "Leave that out, or give the Composable to `external_source` as it is."
            )
        self._stream = ComposableStream(
            composable,
            workers=workers,
            readahead_bytes=readahead_bytes,
            allow_pickle=allow_pickle,
        )
        self._first: Iterator[Any] | None = iter(self._stream)
        self._peeked: list[Any] = []
        names: tuple[str, ...]
        if fields is None or on_mismatch != "skip":
            self._peeked = [next(self._first)]
        if fields is None and isinstance(self._peeked[0], (tuple, list, np.ndarray)):
            item = self._peeked[0]
            count = len(item) if isinstance(item, (tuple, list)) else 1
            names = tuple(str(number) for number in range(count))
            self.single = not isinstance(item, (tuple, list))
        else:
            names = field_names(fields, self._peeked[0] if self._peeked else None)
            self.single = isinstance(fields, str)
        self._reader = FieldReader(names, dtype=dtype, schema=schema, on_mismatch=on_mismatch)
        self.names = names
        if self._peeked and on_mismatch != "skip":
            self._reader.learn(_named(self._peeked[0], names))

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_first": None, "_peeked": []}

    def known_size(self) -> None:
        """Return None: the size is unknown."""

    def size(self) -> int:
        """Raises, as only the shards of a folder can be counted."""
        raise ArgumentValueError(
            "How many samples a Composable gives is not known before it has; give `length`, or "
            "the folder of the shards in its place."
        )

    def open_at(self, epoch: int, position: int) -> tuple[_StreamPass, int]:
        """All samples of an epoch, and how many of them are before `position`."""
        return self.open(epoch, 0), position

    def open(self, epoch: int, position: int) -> _StreamPass:
        """The samples of an epoch from `position` on."""
        first, self._first = self._first, None
        peeked, self._peeked = self._peeked, []
        items = iter(self._stream) if first is None else first
        return _StreamPass(items, peeked, self._reader, position)


class _StreamPass:
    """One epoch of a Composable."""

    def __init__(
        self, items: Iterator[Any], peeked: list[Any], reader: FieldReader, position: int
    ) -> None:
        self._items = items
        self._peeked = peeked
        self._reader = reader
        self._position = position

    def __iter__(self) -> Iterator[Any]:
        number = 0
        for items in (self._peeked, self._items):
            for item in items:
                if number >= self._position:
                    yield self._reader(_named(item, self._reader.names), "", number)[0]
                number += 1

    def close(self) -> None:
        """Stop reading."""
        close = getattr(self._items, "close", None)
        if close is not None:
            close()


def _named(item: Any, names: tuple[str, ...]) -> Any:
    """`item` as a dictionary, where it is a tuple of values or a single one."""
    if isinstance(item, (tuple, list)):
        return dict(zip(names, item, strict=False))
    return {names[0]: item} if isinstance(item, np.ndarray) else item
