"""Memory that several processes write to."""

from __future__ import annotations

import itertools
import os

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

pytestmark = pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="needs Linux")

PAGE = 4096


def used_bytes(file):
    return os.fstat(file.descriptor).st_blocks * 512


def test_memory_returns_to_the_system_when_it_is_given_up():
    from headrace.executor.processes.shared_pool import SharedPool

    pool = SharedPool(idle_limit_bytes=0)
    array = pool.empty((1 << 20,), np.uint8)
    array[:] = 1
    file = pool.file(pool.place_of(array).file)
    assert used_bytes(file) >= 1 << 20
    del array
    pool.trim()
    assert used_bytes(file) == 0


def test_nothing_is_set_aside_of_shared_memory():
    from headrace.executor.processes.shared_pool import SharedPool

    with pytest.raises(NotImplementedError, match="`reserve` is not for shared memory"):
        SharedPool().reserve(1000)


def test_memory_that_is_not_needed_any_more_goes_back_to_the_system():
    from headrace.executor.processes.shared_pool import SharedPool

    pool = SharedPool()
    arrays = [pool.empty((1 << 20,), np.uint8) for _ in range(8)]
    for array in arrays:
        array[:] = 1
    file = pool.file(pool.place_of(array).file)
    arrays.clear()
    del array
    assert used_bytes(file) >= 8 << 20
    for _ in range(2100):
        pool.empty((1 << 20,), np.uint8)
    assert used_bytes(file) < 2 << 20


@given(st.lists(st.integers(1, 5 * PAGE), min_size=1, max_size=30), st.randoms())
def test_ranges_never_overlap_and_are_joined_again(sizes, rng):
    from headrace.executor.processes.shared_pool import SharedFile

    file = SharedFile(0)
    whole = file._free.bytes_free
    taken = []
    for size in sizes:
        size = -(-size // PAGE) * PAGE
        taken.append((file.take(size), size))
        if rng.random() < 0.4:
            file.give_back(*taken.pop(rng.randrange(len(taken))))
    places = sorted(taken)
    for (begin, size), (following, _) in itertools.pairwise(places):
        assert begin + size <= following
    for each in taken:
        file.give_back(*each)
    assert whole == file.size
    assert file._free.take(whole) == 0


def test_places_are_found_for_arrays_of_the_pool_only():
    from headrace.executor.processes.shared_pool import SharedPool
    from headrace.tensors.addresses import addresses_of

    pool = SharedPool()
    own = pool.empty((3, 5), np.int32)
    sizes = np.array([20, 20])
    number, offsets = pool.places_of(addresses_of([own[1], own[2]]), sizes)
    place = pool.place_of(own)
    assert (number, offsets.tolist()) == (place.file, [place.offset + 20, place.offset + 40])
    assert pool.places_of(addresses_of([own[0], np.zeros(5, np.int32)]), sizes) is None
    assert pool.places_of(addresses_of([own[2]]), np.array([1 << 60])) is None
    with pytest.raises(ValueError, match="not in shared memory"):
        pool.place_of(np.zeros(5))


def test_too_much_memory_is_an_error():
    from headrace.executor.processes.shared_pool import SharedPool

    with pytest.raises(MemoryError, match="There is no memory for an array"):
        SharedPool().empty((1 << 60,), np.uint8)
