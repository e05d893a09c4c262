"""Memory that returns by itself: when, how much is kept, and from many threads."""

from __future__ import annotations

import contextlib
import gc
import os
import queue
import random
import signal
import threading
import weakref

import numpy as np
import pytest

from headrace.errors import ArgumentValueError
from headrace.tensors import buffer_sizes
from headrace.tensors.buffer_sizes import ALIGNMENT_BYTES, BUFFER_SETTINGS
from headrace.tensors.pool import HOST_POOL, HostPool, PoolShare


@pytest.fixture
def pool():
    return HostPool(idle_limit_bytes=1 << 30)


@pytest.fixture
def settings(monkeypatch):
    for name in ("host_growth", "host_shrink"):
        monkeypatch.setattr(BUFFER_SETTINGS, name, getattr(BUFFER_SETTINGS, name))
    return BUFFER_SETTINGS


def size_class(size):
    return buffer_sizes.size_class(size, BUFFER_SETTINGS.host_growth)


def address(array):
    return array.__array_interface__["data"][0]


@pytest.mark.sweep
@pytest.mark.parametrize("dtype", [np.bool_, np.uint8, np.float16, np.int32, np.float64])
@pytest.mark.parametrize("shape", [(), (1,), (7, 5), (3, 1, 2, 2), 11])
def test_array_is_ordinary(pool, shape, dtype):
    array = pool.empty(shape, dtype)
    assert type(array) is np.ndarray
    assert array.shape == (shape if isinstance(shape, tuple) else (shape,))
    assert array.dtype == dtype
    assert array.flags.c_contiguous
    assert array.flags.writeable
    assert array.flags.aligned
    assert address(array) % ALIGNMENT_BYTES == 0
    array[...] = 1
    np.testing.assert_array_equal(array, np.ones_like(array))


@pytest.mark.parametrize("shape", [(0,), (3, 0, 2)])
def test_nothing_needs_no_buffer(pool, shape):
    assert pool.empty(shape, np.float32).shape == shape
    assert pool.stats().buffers_made == 0


@pytest.mark.parametrize("shape", [(-1,), (-2, -3)])
def test_negative_extent(pool, shape):
    with pytest.raises(ValueError, match="negative"):
        pool.empty(shape, np.uint8)
    assert pool.stats().buffers_in_use == 0


def test_dropped_buffer_serves_the_next_request(pool):
    array = pool.empty((100, 100), np.float32)
    where = address(array)
    del array
    assert address(pool.empty((100, 99), np.float32)) == where
    stats = pool.stats()
    assert (stats.buffers_made, stats.buffers_reused) == (1, 1)


def test_buffers_in_use_are_apart(pool):
    arrays = [pool.empty(1000, np.uint8) for _ in range(20)]
    for number, array in enumerate(arrays):
        array[...] = number
    assert [int(a.sum()) for a in arrays] == [1000 * n for n in range(20)]
    assert pool.stats().buffers_in_use == 20


def view(array):
    return array[1:, ::2]


def view_of_views(array):
    return array[1:].T[3:].view(np.int32)[::2, 5].reshape(-1, 1)[2:]


def memory_view(array):
    return memoryview(array)[1:]


def array_of_memory_view(array):
    return np.asarray(memoryview(array))[1:]


def from_buffer(array):
    return np.frombuffer(array, np.uint16)


def strided(array):
    return np.lib.stride_tricks.as_strided(array, (2,), (4,))


def subclass(array):
    return array.view(np.recarray)[1:].view(np.ndarray)


class OtherArray:
    def __init__(self, owner):
        self.owner = owner
        self.__array_interface__ = owner.__array_interface__


def array_interface(array):
    return np.asarray(OtherArray(array))


def numpy_dlpack(array):
    return np.from_dlpack(array)[1:]


def bare_capsule(array):
    return array.__dlpack__()


def bare_versioned_capsule(array):
    return array[1:].__dlpack__(max_version=(1, 0))


def torch_dlpack(array):
    return pytest.importorskip("torch").from_dlpack(array)[1:]


def torch_from_numpy(array):
    return pytest.importorskip("torch").from_numpy(array).flatten()


@pytest.mark.parametrize(
    "consume",
    [
        view,
        view_of_views,
        memory_view,
        array_of_memory_view,
        from_buffer,
        strided,
        subclass,
        array_interface,
        numpy_dlpack,
        bare_capsule,
        bare_versioned_capsule,
        torch_dlpack,
        torch_from_numpy,
    ],
)
def test_buffer_returns_with_its_last_user(pool, consume):
    array = pool.empty((64, 64), np.float32)
    user = consume(array)
    del array
    assert pool.stats().buffers_in_use == 1
    assert pool.stats().buffers_idle == 0
    del user
    assert pool.stats().buffers_in_use == 0
    assert pool.stats().buffers_idle == 1


def test_data_stays_while_a_view_lives(pool):
    array = pool.empty((100, 100), np.uint8)
    array[...] = 7
    kept = array[50:].T
    del array
    others = [pool.empty((100, 100), np.uint8) for _ in range(5)]
    for other in others:
        other[...] = 9
    assert (kept == 7).all()


def test_buffer_in_a_cycle_returns_when_the_cycle_is_collected(pool):
    class TensorHandle:
        pass

    gc.disable()
    try:
        holder = TensorHandle()
        holder.itself, holder.array = holder, pool.empty(5000, np.uint8)
        del holder
        assert pool.stats().buffers_in_use == 1
        gc.collect()
        assert pool.stats().buffers_in_use == 0
    finally:
        gc.enable()


def test_array_resurrected_by_its_owner_keeps_its_buffer(pool):
    saved = []

    class Phoenix:
        def __del__(self):
            saved.append(self.array)

    holder = Phoenix()
    holder.itself, holder.array = holder, pool.empty(5000, np.uint8)
    where = address(holder.array)
    del holder
    gc.collect()
    assert pool.stats().buffers_in_use == 1
    assert address(pool.empty(5000, np.uint8)) != where
    saved.clear()
    assert pool.stats().buffers_in_use == 0


def test_release_inside_a_locked_section_does_not_wait(pool):
    array = pool.empty(100, np.uint8)
    with pool._lock:  # where a garbage collection may drop arrays of this same pool
        del array
    assert pool.stats().buffers_idle == 1


def test_pool_may_go_before_its_arrays():
    pool = HostPool()
    array = pool.empty(1000, np.uint8)
    gone = weakref.ref(pool)
    array[...] = 5
    del pool
    gc.collect()
    assert (array == 5).all()
    del array
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize("growth", [1, 1.0001, 1.1, 1.25, 2, 4])
def test_size_classes_waste_what_the_growth_factor_says(growth):
    for size in [*range(1, 3000, 13), 4096, 65537, 10**6, 10**9 + 1, 2**40 + 1]:
        found = buffer_sizes.size_class(size, growth)
        assert found >= size
        assert found % ALIGNMENT_BYTES == 0
        assert found - size < size * (growth - 1) + 2 * ALIGNMENT_BYTES
        assert buffer_sizes.size_class(found, growth) == found
        assert buffer_sizes.size_class(found + 1, growth) > found


def test_sizes_up_are_used_before_new_memory(pool):
    pool.empty(130_000, np.uint8)
    smaller = pool.empty(100_000, np.uint8)
    assert size_class(smaller.nbytes) < size_class(130_000)
    assert pool.stats().buffers_reused == 1


@pytest.mark.parametrize(("growth", "most"), [(1, 60), (1.1, 32), (2, 5)])
def test_growth_factor_spares_allocations(pool, settings, growth, most):
    settings.host_growth = growth
    for percent in range(60):  # batches that become larger and larger, by 5 % each
        pool.empty(int(10_000 * 1.05**percent), np.uint8)
    made = pool.stats().buffers_made
    assert most * 0.8 <= made <= most
    pool.trim()
    held = pool.empty(100_000, np.uint8).nbytes
    assert pool.stats().bytes_idle - held < 100_000 * (growth - 1) + 2 * ALIGNMENT_BYTES


@pytest.mark.parametrize(("threshold", "is_freed"), [(0, False), (0.2, False), (0.7, True)])
def test_memory_that_is_not_needed_is_freed_below_the_threshold(
    pool, settings, threshold, is_freed
):
    settings.host_shrink = threshold
    arrays = [pool.empty(size, np.uint8) for size in (1_000_000, 2_000_000)]
    del arrays  # of which a third is needed from now on
    for _ in range(3000):
        pool.empty(1_000_000, np.uint8)
    assert pool.stats().bytes_idle == pytest.approx(1e6 if is_freed else 3e6, rel=0.11)


def test_memory_that_is_needed_now_and_then_is_kept(pool, settings):
    settings.host_shrink = 1
    for number in range(4000):
        pool.empty(1_000_000, np.uint8)
        if number % 500 == 0:
            arrays = [pool.empty(1_000_000, np.uint8) for _ in range(4)]
            del arrays
    assert pool.stats().buffers_made == 4


def test_reserved_memory_is_taken_before_fresh_memory_is(pool):
    reserve = pool.reserve(1_000_000)
    assert pool.stats().bytes_reserved >= 1_000_000
    arrays = [pool.empty(size, np.uint8) for size in (300_000, 70_000, 400_000)]
    for number, array in enumerate(arrays):
        assert address(array) % ALIGNMENT_BYTES == 0
        array[...] = number
    assert [int(array[-1]) for array in arrays] == [0, 1, 2]
    arrays.append(pool.empty(500_000, np.uint8))
    assert pool.stats().buffers_made == 1
    arrays.clear()
    del array
    # What lies idle in three parts is one again where nothing else is left.
    big = [pool.empty(500_000, np.uint8), pool.empty(900_000, np.uint8)]
    assert pool.stats().buffers_made == 1
    gone = weakref.ref(reserve)
    del reserve
    assert gone() is not None
    big.clear()
    pool.trim()
    assert gone() is None
    assert pool.stats().bytes_reserved == 0


def test_a_share_counts_what_it_has_taken(pool):
    share, other = PoolShare(pool), PoolShare(pool)
    arrays = [share.empty((100, 100), np.float32), share.copy_of(np.zeros(1000))]
    kept = other.empty(50_000, np.uint8)
    assert share.bytes_in_use == size_class(40_000) + size_class(8000)
    assert other.bytes_in_use == size_class(kept.nbytes)
    view = arrays.pop()[3:]
    arrays.clear()
    assert share.bytes_in_use == size_class(8000)
    del view
    assert share.bytes_in_use == 0
    with pytest.raises(MemoryError):
        share.empty(1 << 60, np.uint8)
    assert share.bytes_in_use == 0
    stats = pool.stats()
    assert share.held() == (size_class(kept.nbytes), stats.bytes_idle)
    reserve = pool.reserve(1 << 20)
    assert share.held() == (stats.bytes_in_use, stats.bytes_idle + (1 << 20))
    del kept, reserve
    assert share.held() == (0, pool.stats().bytes_idle)


def test_much_larger_buffers_are_left_alone(pool):
    pool.empty(10_000_000, np.uint8)
    pool.empty(100_000, np.uint8)
    assert pool.stats().buffers_made == 2


def test_idle_memory_is_bounded_and_the_oldest_goes_first():
    size = size_class(10_000)
    pool = HostPool(idle_limit_bytes=3 * size)
    arrays = [pool.empty(size, np.uint8) for _ in range(5)]
    order = [address(a) for a in arrays]
    while arrays:
        arrays.pop(0)
    assert pool.stats().bytes_idle == 3 * size
    again = [pool.empty(size, np.uint8) for _ in range(3)]
    assert {address(a) for a in again} == set(order[2:])
    assert pool.stats().buffers_reused == 3


def test_no_idle_memory_at_all():
    pool = HostPool(idle_limit_bytes=0)
    pool.empty(100, np.uint8)
    assert pool.stats().bytes_idle == 0
    pool.empty(100, np.uint8)
    assert pool.stats().buffers_made == 2


def test_trim(pool):
    sizes = [1000, 2000, 3000, 4000]
    arrays = [pool.empty(n, np.uint8) for n in sizes]
    kept = arrays.pop()
    while arrays:
        arrays.pop(0)
    idle = pool.stats().bytes_idle
    assert idle == sum(map(size_class, sizes[:3]))
    assert pool.trim(keep_bytes=size_class(3000)) == size_class(1000) + size_class(2000)
    assert pool.stats().buffers_idle == 1
    assert pool.trim() == size_class(3000)
    assert pool.stats().bytes_idle == 0
    assert pool.stats().bytes_in_use == size_class(kept.nbytes)
    with pytest.raises(ArgumentValueError, match="keep_bytes"):
        pool.trim(-1)


def test_copy(pool):
    source = np.arange(24).reshape(2, 3, 4)[:, ::-1]
    copy = pool.copy_of(source)
    assert copy.flags.c_contiguous
    np.testing.assert_array_equal(copy, source)
    assert pool.stats().buffers_in_use == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this platform")
def test_child_process_is_not_locked_out(pool):
    with pool._lock:  # as another thread may hold it at the moment of the fork
        child = os.fork()
        if child == 0:
            signal.alarm(20)  # ends the child, should it wait for the lock
            works = pool.empty(10, np.uint8).shape == (10,)
            os._exit(0 if works else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_threads():
    """Buffers travel between threads and are never shared by two arrays at a time."""
    pool = HostPool(idle_limit_bytes=200_000)
    hand_over: queue.SimpleQueue[tuple[np.ndarray, int]] = queue.SimpleQueue()
    errors: list[str] = []

    def work(seed):
        rng = random.Random(seed)
        held = []
        for step in range(400):
            mark = rng.randrange(256)
            array = pool.empty(rng.choice([3, 500, 5000, 5100, 40_000]), np.uint8)
            array[...] = mark
            held.append((array[rng.randrange(3) :], mark))
            if step % 7 == 0:
                hand_over.put(held.pop(rng.randrange(len(held))))
            if step % 5 == 0 and not hand_over.empty():
                with contextlib.suppress(queue.Empty):
                    held.append(hand_over.get_nowait())
            if step % 50 == 0:
                gc.collect(0)
            while len(held) > 6:
                kept, expected = held.pop(rng.randrange(len(held)))
                if not (kept == expected).all():
                    errors.append(f"thread {seed}, step {step}")

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    while not hand_over.empty():
        hand_over.get()
    stats = pool.stats()
    assert not errors
    assert stats.buffers_in_use == 0
    assert stats.buffers_made + stats.buffers_reused == 8 * 400
    assert 0 < stats.bytes_idle <= 200_000
    assert stats.buffers_reused > stats.buffers_made


def test_shared_pool_has_a_limit():
    assert HOST_POOL.idle_limit_bytes > 0


@pytest.mark.parametrize("shape", [(10**9, 10**9, 3), (1 << 46,)])
def test_more_than_there_is(shape):
    with pytest.raises(
        MemoryError, match=r"shape \(\d+.*\) and type float32, which takes \d+ bytes"
    ):
        HostPool().empty(shape, np.float32)
