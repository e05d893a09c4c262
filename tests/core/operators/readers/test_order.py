"""The order of samples: DALI's numbers, and what they guarantee."""

from __future__ import annotations

import json
from itertools import chain, product
from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.errors import ArgumentValueError
from headrace.operators.readers.order import ReadingOrder

# Orders printed by DALI 2.4.0, for data sets of 10 samples.
RANDOM_WHOLE = [
    1, 0, 6, 9, 4, 3, 5, 2, 7, 8,
    6, 3, 1, 8, 4, 9, 0, 7, 5, 2,
    5, 9, 8, 7, 4, 1, 2, 6, 0, 3,
]  # fmt: skip
RANDOM_WINDOW_OF_3 = [
    5, 1, 9, 7, 2, 4, 0, 3, 6, 8,
    5, 6, 1, 2, 9, 4, 0, 7, 8, 3,
    5, 9, 7, 6, 2, 4, 1, 0, 8, 3,
]  # fmt: skip
FIXED = [5, 9, 1, 6, 7, 2, 0, 4, 8, 3]
AFTER_EPOCH_CUMULATIVE = [
    9, 6, 0, 5, 4, 2, 8, 1, 7, 3,
    7, 1, 4, 5, 8, 6, 0, 2, 3, 9,
    4, 5, 9, 8, 3, 1, 0, 6, 7, 2,
    7, 8, 5, 2, 3, 4, 1, 9, 0, 6,
]  # fmt: skip
AFTER_EPOCH_BY_NUMBER = [
    9, 6, 0, 5, 4, 2, 8, 1, 7, 3,
    8, 7, 4, 3, 6, 1, 2, 5, 9, 0,
    2, 3, 9, 4, 8, 1, 6, 5, 0, 7,
    8, 3, 1, 9, 4, 0, 5, 2, 6, 7,
]  # fmt: skip


def drawn(count, size=10, portion=1, **options):
    order = ReadingOrder(size, **options)
    found = []
    while len(found) < count:
        found += order.draw(min(portion, count - len(found)))
    return found


def test_orders_of_dali():
    assert drawn(30, random_shuffle=True, seed=5) == RANDOM_WHOLE
    assert drawn(30, random_shuffle=True, initial_fill=3, seed=5) == RANDOM_WINDOW_OF_3
    assert drawn(20, random_shuffle=True, initial_fill=1, seed=99) == FIXED * 2
    assert drawn(40, shuffle_after_epoch=True) == AFTER_EPOCH_CUMULATIVE
    assert drawn(40, shuffle_after_epoch=True, seed=3) == AFTER_EPOCH_CUMULATIVE
    assert drawn(40, shuffle_after_epoch=True, cumulative=False) == AFTER_EPOCH_BY_NUMBER
    other = drawn(20, shuffle_after_epoch=True, shuffle_after_epoch_seed=1, cumulative=False)
    assert other == [4, 7, 5, 6, 1, 3, 9, 8, 2, 0, 4, 3, 0, 2, 1, 7, 9, 5, 8, 6]
    third = drawn(
        10, shuffle_after_epoch=True, shuffle_after_epoch_seed=3, num_shards=3, shard_id=1
    )
    assert third == [0, 1, 4, 3, 8, 5, 9, 4, 3, 9]


def test_shards_rotate_in_one_stream():
    assert drawn(14, num_shards=3, shard_id=1) == [3, 4, 5, 6, 7, 8, 9, 0, 1, 2, 3, 4, 5, 6]
    assert drawn(7, num_shards=3, shard_id=2, stick_to_shard=True) == [6, 7, 8, 9, 6, 7, 8]


@pytest.mark.parametrize(("size", "shards"), [(10, 3), (10, 4), (7, 7), (101, 8)])
def test_shards_cover_everything_once(size, shards):
    for options in ({}, {"random_shuffle": True}, {"shuffle_after_epoch": True}):
        found = []
        for shard in range(shards):
            length = size * (shard + 1) // shards - size * shard // shards
            found += drawn(length, size, num_shards=shards, shard_id=shard, **options)
        assert sorted(found) == list(range(size))


def test_padding_fills_every_shard_alike():
    def batches(shard, count, **options):
        order = ReadingOrder(9, num_shards=2, shard_id=shard, pad_last_batch=True, **options)
        return [order.draw(4) for _ in range(count)]

    assert batches(0, 4) == [[0, 1, 2, 3], [3, 3, 3, 3], [4, 5, 6, 7], [8, 8, 8, 8]]
    assert batches(1, 3) == [[4, 5, 6, 7], [8, 8, 8, 8], [0, 1, 2, 3]]
    assert batches(0, 3, stick_to_shard=True)[2] == [0, 1, 2, 3]


def test_padding_repeats_the_last_sample_drawn():
    order = ReadingOrder(10, pad_last_batch=True, random_shuffle=True, seed=5)
    batches = [order.draw(4) for _ in range(6)]
    assert list(chain(*batches[:3])) == [*RANDOM_WHOLE[:10], 8, 8]
    assert list(chain(*batches[3:])) == [*RANDOM_WHOLE[10:20], 2, 2]


@pytest.mark.parametrize("sticks", [False, True])
def test_sizes_of_shards_in_every_epoch(sticks):
    """Without padding shard k is floor(k N / S) .. floor((k + 1) N / S); with it, all have
    ceil(ceil(N / S) / B) B samples.
    """
    for size in range(1, 13):
        cuts = [(s, [size * k // s for k in range(s + 1)]) for s in range(1, size + 1)]
        for (shards, cut), batch, pad in product(cuts, (1, 2, 5), (False, True)):
            for first in range(shards):
                order = ReadingOrder(
                    size,
                    num_shards=shards,
                    shard_id=first,
                    pad_last_batch=pad,
                    stick_to_shard=sticks,
                )
                for epoch in range(shards + 2):
                    shard = first if sticks else (first + epoch) % shards
                    expected = list(range(cut[shard], cut[shard + 1]))
                    if pad:
                        batches = ceil(ceil(size / shards) / batch)
                        expected += expected[-1:] * (batches * batch - len(expected))
                        found = [order.draw(batch) for _ in range(batches)]
                    else:
                        found = [order.draw(len(expected))]
                    assert list(chain(*found)) == expected, (size, shards, batch, first, epoch)


ORDERS = st.fixed_dictionaries(
    {
        "size": st.integers(1, 40),
        "num_shards": st.integers(1, 4),
        "mode": st.sampled_from(
            ["plain", "stick", "random", "random stick", "after", "after number"]
        ),
        "pad_last_batch": st.booleans(),
        "initial_fill": st.sampled_from([1, 2, 5, 1000]),
        "seed": st.integers(-(2**40), 2**40),
    }
)


def make(case):
    mode = case["mode"]
    shards = min(case["num_shards"], case["size"])
    return ReadingOrder(
        case["size"],
        num_shards=shards,
        shard_id=shards - 1,
        pad_last_batch=case["pad_last_batch"],
        stick_to_shard="stick" in mode,
        random_shuffle="random" in mode,
        initial_fill=case["initial_fill"],
        seed=case["seed"],
        shuffle_after_epoch="after" in mode,
        cumulative=mode == "after",
    )


@given(ORDERS, st.integers(1, 7), st.integers(0, 30))
def test_restored_order_goes_on_exactly(case, portion, steps):
    order = make(case)
    for _ in range(steps):
        order.draw(portion)
    state = json.loads(json.dumps(order.state()))
    expected = [order.draw(portion) for _ in range(12)]
    fresh = make(case)
    fresh.restore(state)
    assert [fresh.draw(portion) for _ in range(12)] == expected
    order.restore(state)  # backwards
    assert [order.draw(portion) for _ in range(12)] == expected


@given(ORDERS, st.integers(1, 9), st.integers(1, 9))
def test_order_does_not_depend_on_how_many_are_drawn(case, first, second):
    if not case["pad_last_batch"]:
        a, b = make(case), make(case)
        one = [e for _ in range(second * 6) for e in a.draw(first)]
        two = [e for _ in range(first * 6) for e in b.draw(second)]
        assert one == two


@given(ORDERS)
def test_every_epoch_is_a_permutation_of_its_shard(case):
    order = make({**case, "pad_last_batch": False})
    size, shards = case["size"], order.num_shards
    if "after" in case["mode"]:
        return  # a shard of a permutation: see test_shards_cover_everything_once
    shard = order.shard
    everything = list(range(size))
    if "random" in case["mode"]:
        everything = drawn(size, size, random_shuffle=True, initial_fill=1)
    for _ in range(2 * shards + 1):
        start, stop = size * shard // shards, size * (shard + 1) // shards
        assert sorted(order.draw(stop - start)) == sorted(everything[start:stop])
        shard = shard if "stick" in case["mode"] else (shard + 1) % shards


def test_window_limits_how_far_samples_move():
    position = {
        sample: k for k, sample in enumerate(drawn(500, 500, random_shuffle=True, initial_fill=1))
    }
    moved = drawn(500, 500, random_shuffle=True, initial_fill=20, seed=1)
    assert all(position[sample] - k < 20 for k, sample in enumerate(moved))
    assert any(position[sample] - k == 19 for k, sample in enumerate(moved))


def test_epochs_and_seeds_differ():
    first = drawn(200, 100, random_shuffle=True, seed=1)
    assert first[:100] != first[100:]
    assert first[:100] != drawn(100, 100, random_shuffle=True, seed=2)
    assert first == drawn(200, 100, random_shuffle=True, seed=1)


@given(ORDERS, st.integers(1, 60))
def test_next_epoch_goes_where_reading_on_would_have_led(case, count):
    """A jump gives the same epoch as reading through to it."""
    order, reader = make(case), make(case)
    order.draw(count)
    before = order.epoch
    order.next_epoch()
    assert order.epoch > before
    target = order.epoch
    jumped = []
    while order.epoch == target:
        jumped += order.draw(1)
    read = []
    while reader.epoch <= target:
        entry = reader.draw(1)
        if reader.epoch >= target:
            read += entry
    assert jumped == read


def test_next_epoch_at_the_beginning_of_one_does_nothing():
    for options in (
        {},
        {"pad_last_batch": True},
        {"stick_to_shard": True},
        {"random_shuffle": True},
    ):
        order = ReadingOrder(10, **options)
        order.next_epoch()
        order.next_epoch()
        assert order.epoch == 0
        order.draw(3)
        order.next_epoch()
        order.next_epoch()
        assert order.epoch == 1
    order = ReadingOrder(10)
    order.draw(10)
    order.next_epoch()  # all was read, nothing of the next epoch
    assert order.epoch == 1
    assert order.draw(1) == [0]


@given(st.integers(1, 30), st.integers(1, 5), st.integers(1, 100), st.booleans(), st.booleans())
def test_readers_of_all_shards_jump_to_the_same_epoch(size, shards, count, pad, shuffled):
    shards = min(size, shards)
    orders = [
        ReadingOrder(
            size, num_shards=shards, shard_id=k, pad_last_batch=pad, shuffle_after_epoch=shuffled
        )
        for k in range(shards)
    ]
    for order in orders:
        order.draw(count)
    now = [order.next_epoch() for order in orders]
    assert sorted(now) == list(range(shards))
    assert len({order.epoch for order in orders}) == 1
    every = []
    for order in orders:
        k = order.shard
        every += order.draw(size * (k + 1) // shards - size * k // shards)
    assert sorted(every) == list(range(size))


def test_refills_shorten_a_padded_epoch_of_one_shard():
    order = ReadingOrder(10, pad_last_batch=True)
    assert order.draw(4) == [0, 1, 2, 3]
    assert order.draw(2, refill=True) == [4, 5]
    assert order.draw(4) == [6, 7, 8, 9]
    assert order.reached() == (1, 0)
    assert order.draw(4) == [0, 1, 2, 3]


def test_refills_do_not_shorten_a_padded_epoch_of_several_shards():
    order = ReadingOrder(20, num_shards=2, stick_to_shard=True, pad_last_batch=True)
    assert order.draw(4) == [0, 1, 2, 3]
    assert order.draw(2, refill=True) == [4, 5]
    assert order.draw(4) == [6, 7, 8, 9]
    assert order.draw(4) == [9, 9, 9, 9]
    # The last sample may be the bad one, so refills go back from it, and around.
    assert order.draw(2, refill=True) == [8, 7]
    assert order.draw(9, refill=True) == [6, 5, 4, 3, 2, 1, 0, 9, 8]
    assert order.draw(4) == [0, 1, 2, 3]


def test_refills_are_part_of_the_stream_without_padding():
    order = ReadingOrder(5)
    assert order.draw(2) == [0, 1]
    assert order.draw(1, refill=True) == [2]
    assert order.draw(3) == [3, 4, 0]


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"num_shards": 0}, "num_shards"),
        ({"num_shards": -2}, "num_shards"),
        ({"shard_id": -1}, "shard_id"),
        ({"shard_id": 1}, "shard_id"),
        ({"num_shards": 11}, "requested number of shards: 11"),
        ({"random_shuffle": True, "initial_fill": 0}, "initial_fill"),
        ({"random_shuffle": True, "initial_fill": -3}, "initial_fill"),
        ({"random_shuffle": True, "shuffle_after_epoch": True}, "exclude each other"),
        ({"stick_to_shard": True, "shuffle_after_epoch": True}, "exclude each other"),
    ],
)
def test_errors(options, word):
    with pytest.raises(ArgumentValueError, match=word):
        ReadingOrder(10, **options)


def test_millions_of_samples():
    order = ReadingOrder(1_000_000, random_shuffle=True, num_shards=4, shard_id=3)
    first = order.draw(10)
    assert len(set(first)) == 10
    assert all(0 <= e < 1_000_000 for e in first)
    assert len(json.dumps(order.state())) < 200
