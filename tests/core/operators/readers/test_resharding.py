"""What is left of an epoch goes on with another number of shards, each sample once."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from typing import Any

import numpy as np
import pytest

from headrace import samplers
from headrace.operators.readers.given_orders import orders_of
from headrace.operators.readers.index import FileIndex
from headrace.operators.readers.order import ReadingOrder

ORDERS: list[dict[str, Any]] = [
    {},
    {"shuffle_after_epoch": True, "cumulative": False},
    {"pad_last_batch": True},
    {"pad_last_batch": True, "shuffle_after_epoch": True, "cumulative": False},
    {"stick_to_shard": True},
    {"stick_to_shard": True, "pad_last_batch": True},
    {"sampler": samplers.Shuffled()},
    {"sampler": samplers.Shuffled(3, seed=4), "pad_last_batch": True},
    {"sampler": samplers.Balanced(), "stick_to_shard": True},
    {"sampler": "rolled"},
]


def made(size: int, *, sampler: Any = None, **order: Any) -> ReadingOrder:
    """An order; of a sampler, one of a data set of `size` samples, in which each is once."""
    if sampler is None:
        return ReadingOrder(size, **order)
    index = FileIndex([""] * size, files=[k // 2 for k in range(size)])
    index.labels = np.arange(size)
    if sampler == "rolled":
        sampler = lambda epoch: np.roll(np.arange(size), epoch)  # noqa: E731
    return ReadingOrder(size, epochs=orders_of(sampler, index), **order)


def readers(size: int, shards: int, **order: Any) -> list[ReadingOrder]:
    return [made(size, shard_id=k, num_shards=shards, **order) for k in range(shards)]


def drawn(order: ReadingOrder, batch: int) -> list[int]:
    """A batch without its padding."""
    before = order.epoch, order.position
    found = order.draw(batch)
    if order.pad_last_batch:
        start = before[1] if before[0] == order.epoch else 0
        return found[: order.position - start]
    return found


def rest(order: ReadingOrder, batch: int, epoch: int) -> list[int]:
    """What a reader has until the end of an epoch."""
    found: list[int] = []
    while True:
        part = drawn(order, batch if order.pad_last_batch else 1)
        if order.epoch > epoch:
            return found
        found += part


def resumed(origin: ReadingOrder, size: int, shards: int, **order: Any) -> list[ReadingOrder]:
    """Readers that go on from a checkpoint of one of them, stored as checkpoints are."""
    state = json.loads(json.dumps(origin.state()))
    found = readers(size, shards, **order)
    for each in found:
        each.deal({"shards": origin.num_shards, "shard": origin.shard_id, "state": state})
    return found


@pytest.mark.parametrize(
    "sizes", [(1, 2, 5), pytest.param((1, 2, 3, 5, 7), marks=pytest.mark.nightly)], ids=str
)
@pytest.mark.parametrize("order", ORDERS, ids=str)
def test_each_sample_once(order, sizes):
    """All small sizes, numbers of shards before and behind, batch sizes and stopping points."""
    for size, before, after in itertools.product(sizes, (1, 2, 3, 4), (1, 2, 3)):
        if max(before, after) > size:
            continue
        for batch, steps in itertools.product((1, 3), range(size)):
            taken: Counter[int] = Counter()
            olds = readers(size, before, **order)
            for old in olds:
                for _ in range(steps):
                    taken.update(drawn(old, batch))
            origin = olds[(size + steps) % before]
            news = resumed(origin, size, after, **order)
            assert len({(new.epoch, new.rest_size()) for new in news}) == 1
            epoch = news[0].epoch
            copies = resumed(origin, size, after, **order)
            parts = [rest(new, batch, epoch) for new in news]
            assert [rest(copy, batch, epoch) for copy in copies] == parts
            for part in parts:
                taken.update(part)
            assert max(map(len, parts)) - min(map(len, parts)) <= 1
            assert taken == Counter(dict.fromkeys(range(size), epoch + 1)), (size, before, after)
            # From then on the epochs are those of as many readers that began so.
            if order.get("pad_last_batch"):
                plain = readers(size, after, **order)
                for new, usual in zip(news, plain, strict=True):
                    assert (new.epoch, new.rest_size()) == (epoch + 1, None)
                    assert "rest" not in new.state()
                    usual._go_to_epoch(epoch + 1)
                    usual.draw(batch)
                    assert new.draw(batch) == usual.draw(batch)


@pytest.mark.sweep(pairs=True)
@pytest.mark.parametrize("order", ORDERS, ids=str)
@pytest.mark.parametrize("numbers", [(4, 3, 2), (2, 4, 1, 3), (3, 3, 2), (1, 4, 4, 2)], ids=str)
@pytest.mark.parametrize("steps", [0, 1, 2])
def test_again_and_again(order, numbers, steps):
    """Within one epoch, from one number of shards to the next; and the same number goes on."""
    size, batch = 23, 2
    taken: Counter[int] = Counter()
    those = readers(size, numbers[0], **order)
    for count in (*numbers[1:], None):
        for each in those:
            for _ in range(steps):
                taken.update(drawn(each, batch))
        for each in those:  # a checkpoint restored by as many, and followed from another shard
            again = made(size, shard_id=each.shard_id, num_shards=each.num_shards, **order)
            again.restore(json.loads(json.dumps(each.state())))
            beside = made(size, shard_id=each.shard_id, num_shards=each.num_shards, **order)
            beside.follow(those[0].state())
            assert again.state() == each.state() == beside.state()
        if count is not None:
            those = resumed(those[-1], size, count, **order)
    epoch = max(each.epoch for each in those)
    for each in those:
        taken.update(rest(each, batch, epoch))
    assert taken == Counter(dict.fromkeys(range(size), epoch + 1))


@pytest.mark.parametrize("order", ORDERS, ids=str)
def test_a_new_epoch_begins_for_all(order):
    """A jump out of what is left of an epoch takes all readers to the same next one."""
    size = 17
    for steps, later in itertools.product(range(5), range(5)):
        olds = readers(size, 3, **order)
        for old in olds:
            for _ in range(steps):
                old.draw(2)
        news = resumed(olds[0], size, 2, **order)
        found: Counter[int] = Counter()
        for new in news:
            for _ in range(later):
                new.draw(2)
            new.next_epoch()
        if order.get("stick_to_shard"):
            continue  # each begins an epoch of its own shard
        assert len({new.epoch for new in news}) == 1
        for new in news:
            found.update(rest(new, 2, new.epoch))
            assert new.rest_size() is None
        if steps and later:
            assert found == Counter(range(size))


def test_windows_are_not_dealt():
    assert ReadingOrder(9).why_fixed() == ""
    assert "samplers.Shuffled()" in ReadingOrder(9, random_shuffle=True).why_fixed()
