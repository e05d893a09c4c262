"""The emulated GPU finds what it is made to find."""

from __future__ import annotations

import ctypes
import threading

import numpy as np
import pytest

from tests.support.gpu.cpu_functions import KernelError
from tests.support.gpu.memory import FRESH
from tests.support.gpu.runtime import EmulatedRuntime
from tests.support.gpu.streams import run_until


@pytest.fixture(params=[True, False], ids=["late", "at once"])
def any_gpu(request) -> EmulatedRuntime:
    runtime = EmulatedRuntime(late=request.param)
    runtime.activate()
    return runtime


@pytest.fixture
def gpu() -> EmulatedRuntime:
    runtime = EmulatedRuntime()
    runtime.activate()
    return runtime


@pytest.fixture(autouse=True)
def gpu_runtime() -> None:
    """Each test makes its own, since most of them break it."""


def view(address: int, size: int) -> np.ndarray:
    return np.frombuffer((ctypes.c_ubyte * size).from_address(address), np.uint8)


def test_what_is_synchronized_is_done(any_gpu) -> None:
    stream = any_gpu.acquire_stream()
    host, device = any_gpu.allocate_pinned(8), any_gpu.allocate(8)
    any_gpu.fill(device, 7, 8, stream)
    any_gpu.copy(host, device, 8, stream)
    event = any_gpu.record(stream)
    event.synchronize()
    assert event.done()
    assert (view(host, 8) == 7).all()
    any_gpu.synchronize(stream)
    any_gpu.check()


def test_nothing_runs_before_somebody_looks(gpu) -> None:
    stream = gpu.acquire_stream()
    device = gpu.allocate(8)
    assert (view(device, 8) == FRESH).all()
    gpu.fill(device, 7, 8, stream)
    event = gpu.record(stream)
    assert not event.done()
    assert (view(device, 8) == FRESH).all()
    assert gpu.pending() == ["fill of 8 bytes"]
    assert not event.done()
    assert event.done()  # who asks often enough gets on
    assert (view(device, 8) == 7).all()


def test_a_missing_wait_shows(gpu) -> None:
    writer, reader = gpu.acquire_stream(), gpu.acquire_stream()
    device, target = gpu.allocate(4), gpu.allocate(4)
    gpu.fill(device, 1, 4, writer)
    with pytest.raises(KernelError, match=r"fill of 4 bytes on stream .* nothing waits for it"):
        gpu.copy(target, device, 4, reader)
    gpu.wait(reader, gpu.record(writer))
    gpu.copy(target, device, 4, reader)
    gpu.synchronize(reader)
    assert (view(target, 4) == 1).all()


def test_a_missing_wait_shows_where_the_values_are_right(gpu) -> None:
    writer, reader, other = (gpu.acquire_stream() for _ in range(3))
    device, target = gpu.allocate(4), gpu.allocate(4)
    gpu.fill(device, 1, 4, writer)
    gpu.wait(other, gpu.record(writer))
    gpu.copy(target, device, 4, other)
    run_until(gpu._stream(writer), 1)  # the device may be there, but nobody knows
    with pytest.raises(KernelError, match="nothing waits for it"):
        gpu.copy(target, device, 4, reader)
    with pytest.raises(KernelError, match="nothing waits for it"):
        gpu.fill(device, 2, 4, reader)
    gpu.synchronize(other)  # and so the host knows of the writer, too
    gpu.copy(target, device, 4, reader)


def test_kernels_that_read_what_another_stream_writes(gpu) -> None:
    writer, reader = gpu.acquire_stream(), gpu.acquire_stream()
    device = gpu.allocate(4)
    gpu.fill(device, 1, 4, writer)
    function = gpu.function("__global__ void touch(int* p) { *p = 1; }", "touch")
    with pytest.raises(KernelError, match=r"launch of touch on stream .* nothing waits for it"):
        function((1, 1, 1), (1, 1, 1), (np.uint64(device),), 0, reader)
    gpu.record(writer).synchronize()
    function((1, 1, 1), (1, 1, 1), (np.uint64(device),), 0, reader)


@pytest.mark.parametrize("number", [0, 1])
def test_the_legacy_stream_waits_for_blocking_streams(gpu, number) -> None:
    blocking, free = gpu.new_stream(blocking=True), gpu.new_stream(blocking=False)
    device, others, target = gpu.allocate(4), gpu.allocate(4), gpu.allocate(4)
    gpu.fill(device, 1, 4, blocking)
    gpu.fill(others, 2, 4, free)
    with pytest.raises(KernelError, match="nothing waits for it"):
        gpu.copy(target, others, 4, number)
    gpu.copy(target, device, 4, number)
    gpu.copy(device, target, 4, blocking)  # and they wait for it
    with pytest.raises(KernelError, match="nothing waits for it"):
        gpu.copy(others, target, 4, free)
    gpu.fill(device, 3, 4, blocking)
    gpu.record(number).synchronize()
    assert (view(device, 4) == 3).all(), "an event comes behind their work, too"


def test_each_thread_has_a_default_stream_of_its_own(gpu) -> None:
    device, target = gpu.allocate(4), gpu.allocate(4)
    gpu.fill(device, 1, 4, 2)
    gpu.copy(target, device, 4, 2)
    found: list[str] = []

    def elsewhere() -> None:
        with gpu.active():
            try:
                gpu.copy(target, device, 4, 2)
            except KernelError as error:
                found.append(str(error))
            gpu.copy(target, device, 4, 1)

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert "nothing waits for it" in found[0]


def test_streams_belong_to_a_device_until_they_are_destroyed(gpu) -> None:
    other = EmulatedRuntime(1)
    stream = other.acquire_stream()
    with pytest.raises(KernelError, match="GPU 0 has no stream"):
        gpu.record(stream)
    mine = gpu.new_stream(blocking=False)
    event = gpu.record(mine)
    gpu.destroy_stream(mine)
    assert event.done()
    with pytest.raises(KernelError, match="not any more"):
        gpu.record(mine)


def test_waits_reach_through_streams_in_the_order_they_were_given(gpu) -> None:
    streams = [gpu.acquire_stream() for _ in range(3)]
    device = gpu.allocate(1)
    for round_ in range(500):  # deep chains, too
        for k, stream in enumerate(streams):
            gpu.wait(stream, gpu.record(streams[k - 1]))
            gpu.fill(device, (3 * round_ + k) % 251, 1, stream)
    gpu.synchronize(streams[1])
    assert view(device, 1)[0] == (3 * 499 + 1) % 251
    assert gpu.pending() == ["wait", "fill of 1 bytes"]


def test_staging_that_is_written_too_early_shows(gpu) -> None:
    stream = gpu.acquire_stream()
    host, device = gpu.allocate_pinned(4), gpu.allocate(4)
    view(host, 4)[:] = 1
    gpu.copy(device, host, 4, stream)
    view(host, 4)[:] = 2
    gpu.synchronize(stream)
    assert (view(device, 4) == 2).all()


def test_plain_host_memory_is_read_and_written_before_the_call_returns(gpu) -> None:
    stream = gpu.acquire_stream()
    device = gpu.allocate(4)
    source, target = np.ones(4, np.uint8), np.zeros(4, np.uint8)
    gpu.copy(device, source.ctypes.data, 4, stream)
    source[:] = 2
    with pytest.raises(KernelError, match="no other thread has the interpreter"):
        gpu.copy(target.ctypes.data, device, 4, stream)
    gpu.copy(target.ctypes.data, device, 4, stream, may_wait=True)
    assert (target == 1).all()


def test_arrays_see_the_work_of_their_stream(gpu) -> None:
    stream = gpu.acquire_stream()
    device = gpu.allocate(24)
    gpu.fill(device, 1, 24, stream)
    with gpu.using(stream):
        array = gpu.array(device, (2, 3), np.dtype(np.int32), None, None, 24)
        assert (array == 0x01010101).all()
        array[:] = np.arange(6).reshape(2, 3)
        gpu.fill(device + 4, 0, 4, stream)
        assert array.tolist() == [[0, 0, 2], [3, 4, 5]]
    backwards = gpu.array(device + 20, (3, 2), np.dtype(np.int32), (-4, -12), None, 24)
    assert backwards.tolist() == [[5, 2], [4, 0], [3, 0]]


def test_overruns_are_found(gpu) -> None:
    device = gpu.allocate(5)
    ctypes.memset(device, 1, 5)
    gpu.check()
    ctypes.memset(device + 5, 1, 1)
    with pytest.raises(KernelError, match="behind the end of 5 bytes of device memory"):
        gpu.check()
    with pytest.raises(KernelError, match=r"behind the end .*offset \+0"):
        gpu.free(device)
    other = gpu.allocate_pinned(4)
    ctypes.memset(other - 3, 1, 1)
    with pytest.raises(KernelError, match="before the begin of 4 bytes of pinned memory"):
        gpu.free_pinned(other)


def test_copies_beyond_the_end_are_refused(gpu) -> None:
    device, host = gpu.allocate(8), gpu.allocate_pinned(16)
    with pytest.raises(KernelError, match=r"12 bytes from .* go beyond the 8 bytes of device"):
        gpu.copy(device, host, 12, 1)
    with pytest.raises(KernelError, match="go beyond the 8 bytes"):
        gpu.fill(device + 1, 0, 8, 1)


def test_freed_memory_is_not_used(gpu) -> None:
    stream = gpu.acquire_stream()
    device = gpu.allocate(8)
    gpu.fill(device, 0, 8, stream)
    with pytest.raises(KernelError, match="freed while the fill of 8 bytes is still queued"):
        gpu.free(device)
    gpu.synchronize(stream)
    gpu.free(device)
    with pytest.raises(KernelError, match="has been freed"):
        gpu.fill(device, 0, 8, stream)
    ctypes.memset(device + 2, 0, 1)
    gpu.errors.clear()
    with pytest.raises(KernelError, match=r"after they had been freed \(offset 2\)"):
        gpu.check()


def test_memory_ends() -> None:
    runtime = EmulatedRuntime(memory_bytes=100)
    first = runtime.allocate(80)
    with pytest.raises(MemoryError):
        runtime.allocate(21)
    runtime.free(first)
    runtime.allocate(100)


def test_threads_say_which_device_they_use() -> None:
    runtime = EmulatedRuntime(late=False)
    device = runtime.allocate(1)
    with runtime.active():
        event = runtime.record(1)
    for call in (
        lambda: runtime.fill(device, 0, 1, 1),
        lambda: runtime.record(1),
        lambda: runtime.wait(1, event),
        lambda: runtime.synchronize(1),
    ):
        with pytest.raises(KernelError, match="GPU 0 is not current in this thread"):
            call()
        with runtime.active():
            call()
    event.synchronize()


def test_errors_of_queued_work_are_kept(gpu) -> None:
    source = "__global__ void divide(int* p) { p[0] = 1 / p[1]; }"
    device = gpu.allocate(8)
    gpu.fill(device, 0, 8, 1)
    gpu.function(source, "divide")((1, 1, 1), (1, 1, 1), (np.uint64(device),), 0, 1)
    assert list(gpu.launches) == ["divide"]
    with pytest.raises(KernelError, match="division by zero"):
        gpu.synchronize(1)
    gpu.synchronize(1)
    with pytest.raises(KernelError, match="division by zero"):
        gpu.check()


def test_launches_take_memory_of_the_device(gpu) -> None:
    function = gpu.function("__global__ void touch(int* p) { *p = 1; }", "touch")
    plain = np.zeros(1, np.int32)
    with pytest.raises(KernelError, match="neither device memory nor page-locked"):
        function((1, 1, 1), (1, 1, 1), (np.uint64(plain.ctypes.data),), 0, 1)
    pinned = gpu.allocate_pinned(4)
    function((1, 1, 1), (1, 1, 1), (np.uint64(pinned),), 0, 1)
    gpu.synchronize(1)
    assert view(pinned, 4).view(np.int32)[0] == 1
