"""Counting epochs: sizes and last batches, without pipelines."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.plugin.epoch_counter import (
    DrawnBatch,
    EndlessCounter,
    LastBatchPolicy,
    ReaderCounter,
    SizeCounter,
)

FILL, DROP, PARTIAL = LastBatchPolicy.FILL, LastBatchPolicy.DROP, LastBatchPolicy.PARTIAL


def run_epoch(counter, pipelines, batch_size):
    steps = 0
    while counter.steps_left():
        kept = counter.advance([DrawnBatch(batch_size)] * pipelines)
        assert kept is not None
        steps += 1
    for _ in range(counter.leftover_steps()):
        counter.advance([DrawnBatch(batch_size)] * pipelines)
    counter.next_epoch()
    return steps


def test_values_of_the_policies_are_those_of_dali():
    assert [policy.value for policy in (FILL, DROP, PARTIAL)] == [0, 1, 2]


def test_kept_samples():
    assert DrawnBatch(4).kept(9) == 4
    assert DrawnBatch(4).kept(3) == 3
    assert DrawnBatch(4).kept(-2) == 0
    # Sample 1 was bad, and entry 4 has taken its place.
    redrawn = DrawnBatch(4, 1, [0, 4, 2, 3])
    assert redrawn.kept(5) == 4
    assert redrawn.kept(4) == [0, 2, 3]
    assert redrawn.kept(2) == 1
    assert redrawn.kept(0) == 0


def test_sizes_read_ahead_count_in_the_next_epoch():
    counter = ReaderCounter(7, 1, [0], 2, FILL, padded=False, sticks=False)
    seen = []
    for _ in range(4):
        size = counter.size
        seen.append((size, run_epoch(counter, 1, 2)))
    assert seen == [(8, 4), (6, 3), (8, 4), (6, 3)]


def test_batch_larger_than_the_data_set():
    counter = ReaderCounter(7, 1, [0], 30, FILL, padded=False, sticks=False)
    assert [run_epoch(counter, 1, 30) for _ in range(5)] == [1] * 5


@given(
    st.integers(1, 60),
    st.integers(1, 5),
    st.integers(1, 9),
    st.sampled_from([FILL, DROP, PARTIAL]),
    st.booleans(),
    st.booleans(),
)
def test_all_processes_agree_on_the_number_of_batches(size, shards, batch, policy, padded, sticks):
    shards = min(shards, size)
    counters = [
        ReaderCounter(size, shards, [k], batch, policy, padded=padded, sticks=sticks)
        for k in range(shards)
    ]
    together = ReaderCounter(
        size, shards, range(shards), batch, policy, padded=padded, sticks=sticks
    )
    for _ in range(5):
        assert len({c.size for c in [*counters, together]}) == 1
        steps = {run_epoch(c, 1, batch) for c in counters}
        assert steps == {run_epoch(together, shards, batch)}


@given(st.integers(1, 60), st.integers(1, 9), st.sampled_from([FILL, DROP, PARTIAL]))
def test_state_goes_on_exactly(size, batch, policy):
    for make in (
        lambda: ReaderCounter(size, 1, [0], batch, policy, padded=False, sticks=False),
        lambda: SizeCounter(size, 1, batch, policy, padded=False),
    ):
        counter = make()
        for _ in range(3):
            run_epoch(counter, 1, batch)
        if counter.steps_left():
            counter.advance([DrawnBatch(batch)])
        other = make()
        other.restore(json.loads(json.dumps(counter.state())))
        assert other.steps_left() == counter.steps_left()
        assert [run_epoch(other, 1, batch) for _ in range(3)] == [
            run_epoch(counter, 1, batch) for _ in range(3)
        ]


def test_partial_cuts_each_shard_by_itself():
    counter = ReaderCounter(10, 3, [0, 1, 2], 3, PARTIAL, padded=True, sticks=False)
    step = [DrawnBatch(3)] * 3
    assert counter.advance(step) == [3, 3, 3]
    assert counter.advance(step) == [0, 0, 1]
    counter.next_epoch()
    assert counter.advance(step) == [3, 3, 3]
    assert counter.advance(step) == [0, 1, 0]


def test_partial_of_a_size_cuts_from_the_end():
    counter = SizeCounter(7, 2, 2, PARTIAL, padded=False)
    step = [DrawnBatch(2)] * 2
    assert counter.advance(step) == [2, 2]
    assert counter.advance(step) == [2, 1]
    counter.next_epoch()
    assert counter.steps_left() == 2


def test_skipped_samples_shorten_a_partial_epoch():
    counter = ReaderCounter(7, 1, [0], 2, PARTIAL, padded=False, sticks=False)
    assert counter.steps_left() == 4
    assert counter.advance([DrawnBatch(2, 3)]) == [2]
    assert counter.steps_left() == 1
    assert counter.advance([DrawnBatch(2, 1, [0, 2])]) == [1]
    assert counter.steps_left() == 0


@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("shards", [1, 2])
def test_skipped_samples_shorten_the_epoch_of_a_single_shard_only(shards, padded):
    counter = ReaderCounter(
        7 * shards, shards, [0], 2, PARTIAL, padded=padded, sticks=True, skips=True
    )
    kept = []
    while counter.steps_left():
        kept += counter.advance([DrawnBatch(2, 2 if not kept else 0)])
    assert kept == ([2, 2, 1] if shards == 1 else [2, 2, 1, 1])


def test_a_last_batch_whose_samples_of_the_epoch_are_all_bad_is_none():
    for policy, padded in ((PARTIAL, True), (PARTIAL, False), (DROP, True), (FILL, True)):
        counter = ReaderCounter(3, 1, [0], 2, policy, padded=padded, sticks=False)
        assert counter.advance([DrawnBatch(2)]) == [2]
        assert counter.advance([DrawnBatch(2, 2, [2, 3])]) is None
    counter = ReaderCounter(3, 1, [0], 2, FILL, padded=False, sticks=False)
    counter.advance([DrawnBatch(2)])
    assert counter.advance([DrawnBatch(2, 2, [2, 3])]) == [2]  # they count in the next epoch


def test_a_batch_that_skipping_made_incomplete_is_dropped():
    counter = ReaderCounter(8, 1, [0], 4, DROP, padded=False, sticks=False)
    assert counter.advance([DrawnBatch(4, 1)]) == [4]
    assert counter.steps_left() == 0
    assert counter.leftover_steps() == 1
    counter = ReaderCounter(8, 1, [0], 4, DROP, padded=False, sticks=False)
    counter.advance([DrawnBatch(4)])
    assert counter.advance([DrawnBatch(4, 1)]) is None
    assert counter.leftover_steps() == 0


@pytest.mark.parametrize("policy", [FILL, DROP, PARTIAL])
def test_restart_begins_with_nothing_drawn(policy):
    counter = ReaderCounter(7, 2, [1], 2, policy, padded=False, sticks=False)
    counter.advance([DrawnBatch(2)])
    counter.restart([0])
    other = ReaderCounter(7, 2, [0], 2, policy, padded=False, sticks=False)
    assert counter.steps_left() == other.steps_left()
    assert counter.state()["rotation"] == 1
    counter.restart(None)
    assert counter.state()["rotation"] == 0
    size = SizeCounter(7, 1, 2, policy, padded=False)
    size.advance([DrawnBatch(2)])
    size.restart(None)
    assert size.state() == {"counter": 0}


def test_endless():
    counter = EndlessCounter()
    assert counter.steps_left() is None
    assert counter.advance([DrawnBatch(3)]) == [3]
    counter.next_epoch()
    counter.restart(None)
    counter.restore(counter.state())
    assert counter.leftover_steps() == 0


@pytest.mark.parametrize(
    ("size", "beyond"), [(12, [0, 0, 0]), (11, [0, 0, 1]), (9, [0, 1, 2]), (7, [1, 2, 2])]
)
def test_what_is_beyond_a_size_is_that_of_the_last_pipelines(size, beyond):
    counter = SizeCounter(size, 3, 2, FILL, padded=True)
    while counter.steps_left():
        counter.advance([DrawnBatch(2)] * 3)
    assert counter.beyond(3) == beyond
