"""Batches that lie in Ray's store: the user may write to them, and keep as many as wanted."""

from __future__ import annotations

import gc
import mmap

import numpy as np
import pytest

pytest.importorskip("ray")

from headrace import fn, pipeline_def
from headrace.plugin.pytorch import DALIGenericIterator
from headrace.plugin.ray import RayIterator
from headrace.plugin.ray.store_memory import SMALLEST_LOAN, StoreMemory, may_write
from tests.ray.iterators import SETTINGS, values


def stored(nbytes, protection=mmap.PROT_READ | mmap.PROT_WRITE):
    """An array as the store gives it: shared memory, marked read-only."""
    memory = mmap.mmap(-1, nbytes, mmap.MAP_SHARED, protection)
    array = np.frombuffer(memory, np.uint8)
    array.flags.writeable = False
    return array


def test_an_array_is_handed_out_as_it_is_and_written_to():
    array = stored(2 * SMALLEST_LOAN)
    (own,) = StoreMemory(4 * SMALLEST_LOAN).own([array])
    own[7] = 3
    assert array[7] == 3
    assert not array.flags.writeable


def test_more_than_the_limit_and_what_is_small_are_copied():
    memory = StoreMemory(3 * SMALLEST_LOAN)
    arrays = [stored(2 * SMALLEST_LOAN) for _ in range(3)]
    small = stored(4096)
    first, tiny = memory.own([arrays[0], small])
    assert np.shares_memory(first, arrays[0])
    assert not np.shares_memory(tiny, small)
    assert memory.bytes_in_use == 2 * SMALLEST_LOAN
    (second,) = memory.own([arrays[1]])
    assert not np.shares_memory(second, arrays[1])
    assert second.flags.writeable
    part = first[5:9].view(np.int8)  # keeps all of it, as a tensor does
    del first
    gc.collect()
    assert memory.bytes_in_use == 2 * SMALLEST_LOAN
    del part
    gc.collect()
    assert memory.bytes_in_use == 0
    (third,) = memory.own([arrays[2]])
    assert np.shares_memory(third, arrays[2])


def test_memory_that_may_only_be_read_is_copied():
    array = stored(2 * SMALLEST_LOAN, mmap.PROT_READ)
    (own,) = StoreMemory(4 * SMALLEST_LOAN).own([array])
    own[0] = 1
    assert array[0] == 0
    assert may_write(np.zeros(3))


@pipeline_def(batch_size=4, **SETTINGS)
def large():
    """Batches of 6 MB, of which 20 are as much as the store takes."""
    x = fn.external_source(lambda n: np.full((1,), n.idx_in_epoch, np.float32), batch=False)
    x = fn.random.uniform(range=(0, 1), shape=(700, 550)) + x
    return x, fn.copy(x)[:2]


def test_batches_are_kept_and_changed(cluster):
    names = ["x", "y"]
    alone = iter(DALIGenericIterator(large(), names))
    iterator = RayIterator(large(), names, num_workers=1, cut="outputs", bytes_in_flight=48 << 20)
    kept = []
    for _ in range(25):
        batch = next(iterator)
        for mine, his in zip(values(batch), values(next(alone)), strict=True):
            np.testing.assert_array_equal(mine, his)
        batch[0]["x"][1:] += 1
        kept.append((batch, batch[0]["x"].numpy().copy()))
    assert iterator._executors()[0]._store.bytes_in_use > 0
    for batch, expected in kept:
        np.testing.assert_array_equal(batch[0]["x"].numpy(), expected)
    del kept, batch
    gc.collect()
    assert iterator._executors()[0]._store.bytes_in_use <= 2 * 4 * 700 * 550 * 4
