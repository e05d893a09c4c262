"""Memory of the device and page-locked memory: sizes, what is set aside, what is counted."""

from __future__ import annotations

import numpy as np
import pytest

from headrace import backend
from headrace.tensors.buffer_sizes import BUFFER_SETTINGS, size_class
from headrace.tensors.gpu.device import get_device
from headrace.tensors.gpu.pool import DevicePool
from headrace.tensors.pool import PoolUsage


@pytest.mark.parametrize(("growth", "allocations"), [(1, 40), (1.1, 20), (4, 3)])
def test_growth_factor_spares_allocations(emulated_gpu, monkeypatch, growth, allocations):
    monkeypatch.setattr(BUFFER_SETTINGS, "device_growth", growth)
    pool = DevicePool(emulated_gpu)
    stream = emulated_gpu.acquire_stream()
    for percent in range(40):
        pool.take(int(10_000 * 1.05**percent), stream)
    assert allocations * 0.8 <= pool.allocations <= allocations * 1.2
    emulated_gpu.release_stream(stream)


def test_reserved_memory_is_taken_before_the_driver_is_asked(gpu_runtime):
    pool = DevicePool(gpu_runtime)
    streams = [gpu_runtime.acquire_stream() for _ in range(2)]
    reserve = pool.reserve(100_000)
    begin, end = reserve.address, reserve.address + 100_000
    usage = PoolUsage()
    pieces = [pool.take(20_000, stream, usage=usage) for stream in streams * 2]
    assert pool.allocations == 1
    assert all(begin <= piece.address <= end - 20_000 for piece in pieces)
    assert len({piece.address for piece in pieces}) == 4
    assert usage.bytes_in_use == 4 * size_class(20_000, 1.1)
    del reserve
    outside = pool.take(50_000, streams[0])
    assert pool.allocations == 2
    assert not begin <= outside.address < end
    del pieces
    assert pool.bytes_of(usage) == 0
    assert pool.trim() >= 100_000
    assert not pool._parts
    pool.take(20_000, streams[0])
    assert pool.allocations == 3
    for stream in streams:
        gpu_runtime.release_stream(stream)


def test_preallocated_memory_serves_batches_until_it_is_released(gpu_runtime):
    device = get_device(0)
    backend.ReleaseUnusedMemory()
    allocated, made = device.memory.allocations, device.pinned.stats().buffers_made
    backend.PreallocateDeviceMemory(1 << 20, 0)
    backend.PreallocatePinnedMemory(1 << 20)
    backend.PreallocateDeviceMemory(0, 0)
    memory = device.memory.take(700_000, 0)
    pinned = device.pinned.empty(700_000, np.uint8)
    assert device.memory.allocations == allocated + 1
    assert device.pinned.stats().buffers_made == made
    assert device.pinned.stats().bytes_reserved < 400_000
    del memory, pinned
    backend.ReleaseUnusedMemory()
    assert device.pinned.stats().bytes_reserved == device.pinned.stats().bytes_idle == 0
    assert device.memory.bytes_idle() == 0
    device.memory.take(700_000, 0)
    assert device.memory.allocations == allocated + 2


@pytest.mark.parametrize(("growth", "most"), [(1, 1100), (4, 4200)])
def test_page_locked_memory_grows_as_host_memory_does(gpu_runtime, monkeypatch, growth, most):
    monkeypatch.setattr(BUFFER_SETTINGS, "host_growth", growth)
    pool = get_device(0).pinned
    pool.trim()
    used = pool.stats().bytes_in_use
    array = pool.empty(1030, np.uint8)
    assert 1030 <= pool.stats().bytes_in_use - used <= most
    del array
    assert pool.empty(1000, np.uint8).nbytes == 1000


def test_page_locked_memory_is_not_freed_before_it_is_asked_for(gpu_runtime, monkeypatch):
    monkeypatch.setattr(BUFFER_SETTINGS, "host_shrink", 1)
    pool = get_device(0).pinned
    pool.trim()
    pool.empty(1_000_000, np.uint8)
    for _ in range(3000):
        pool.empty(1000, np.uint8)
    assert pool.stats().bytes_idle > 1_000_000
