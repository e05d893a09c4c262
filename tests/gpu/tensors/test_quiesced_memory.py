"""Memory for writers that do not keep to the order of a stream."""

from __future__ import annotations

from headrace.tensors.gpu.pool import DevicePool


def test_the_same_stream_gets_other_memory_back_at_once(gpu_runtime):
    pool = DevicePool(gpu_runtime)
    stream = gpu_runtime.acquire_stream()
    first = pool.take(1000, stream)
    address = first.address
    gpu_runtime.fill(address, 1, 1000, stream)
    del first
    assert pool.take(1000, stream).address == address
    gpu_runtime.synchronize(stream)
    gpu_runtime.release_stream(stream)


def test_settled_memory_is_not_what_queued_work_still_uses(emulated_gpu):
    pool = DevicePool(emulated_gpu)
    stream = emulated_gpu.acquire_stream()
    for quiesced in (False, True):
        memory = pool.take(1000, stream, quiesced=quiesced)
        address = memory.address
        emulated_gpu.fill(address, 1, 1000, stream)
        del memory
        other = pool.take(1000, stream, quiesced=True)
        assert other.address != address
        emulated_gpu.synchronize(stream)
    emulated_gpu.release_stream(stream)


def test_settled_memory_comes_back_once_its_work_is_done(gpu_runtime):
    pool = DevicePool(gpu_runtime)
    stream, other = gpu_runtime.acquire_stream(), gpu_runtime.acquire_stream()
    addresses = set()
    for _ in range(5):
        memory = pool.take(5000, stream, quiesced=True)
        addresses.add(memory.address)
        memory.record_stream(other)
        gpu_runtime.fill(memory.address, 1, 5000, other)
        del memory
        pool.take(10, stream)  # events are made when somebody comes
        gpu_runtime.synchronize(stream)
        gpu_runtime.synchronize(other)
    assert len(addresses) == 1
    gpu_runtime.release_stream(stream)
    gpu_runtime.release_stream(other)


def test_the_stream_it_was_taken_for_waits_for_others_alone(emulated_gpu):
    pool = DevicePool(emulated_gpu)
    home, reader, third = (emulated_gpu.acquire_stream() for _ in range(3))
    target, second = emulated_gpu.allocate(1000), emulated_gpu.allocate(1000)
    memory = pool.take(1000, home)
    address = memory.address
    emulated_gpu.fill(address, 1, 1000, home)
    memory.record_stream(reader)
    emulated_gpu.wait(reader, emulated_gpu.record(home))
    emulated_gpu.copy(target, address, 1000, reader)
    emulated_gpu.copy(second, address, 1000, home)
    del memory
    kept = [pool.take(1000, home)]
    assert kept[0].address != address  # the reader is not done
    emulated_gpu.synchronize(reader)
    kept.append(pool.take(1000, home))
    assert kept[1].address == address  # its own work is not done either, and comes before
    kept[1].record_stream(reader)
    emulated_gpu.fill(address, 2, 1000, home)
    kept.pop()
    pool.take(10, home)  # events are made when somebody comes
    emulated_gpu.synchronize(reader)
    kept.append(pool.take(1000, third))
    assert kept[1].address != address  # work of `home` is queued, and nothing orders the two
    emulated_gpu.synchronize(home)
    kept.append(pool.take(1000, third))
    assert kept[2].address == address
    emulated_gpu.free(target)
    emulated_gpu.free(second)
    for stream in (home, reader, third):
        emulated_gpu.release_stream(stream)


def test_trimming_waits_for_the_stream_it_was_taken_for(emulated_gpu):
    pool = DevicePool(emulated_gpu)
    home, reader = emulated_gpu.acquire_stream(), emulated_gpu.acquire_stream()
    memory = pool.take(1 << 20, home)
    memory.record_stream(reader)
    emulated_gpu.fill(memory.address, 1, 1 << 20, home)
    behind = emulated_gpu.record(home)
    del memory
    assert pool.trim() >= 1 << 20
    assert behind.done()
    for stream in (home, reader):
        emulated_gpu.release_stream(stream)


def test_trimming_frees_it(gpu_runtime):
    pool = DevicePool(gpu_runtime)
    stream = gpu_runtime.acquire_stream()
    memory = pool.take(1 << 20, stream, quiesced=True)
    assert pool.bytes_allocated >= 1 << 20
    del memory
    assert pool.trim() >= 1 << 20
    assert pool.bytes_allocated == 0
    gpu_runtime.release_stream(stream)
