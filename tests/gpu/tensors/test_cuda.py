"""`CudaRuntime` on a CUDA that only notes what is called: what no other machine could show."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
import warnings
from pathlib import Path

import numpy as np
import pytest

from headrace.errors import GpuNotAvailableError
from headrace.tensors.gpu import nvrtc
from headrace.tensors.gpu.cuda import CudaRuntime
from headrace.tensors.gpu.pinned import PinnedHostPool
from headrace.tensors.gpu.pool import STAGING_BYTES, StagingPool
from headrace.tensors.gpu.runtime import (
    check_available,
    current_device,
    get_runtime,
    install_runtime,
)
from tests.support.gpu.cuda_library import install_fake_cuda

_ROOT = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def gpu_runtime():
    """Each test makes its own."""


@pytest.fixture
def cuda(monkeypatch):
    install_runtime(None)
    yield install_fake_cuda(monkeypatch)
    install_runtime(None)


def test_a_copy_that_may_wait_lets_other_threads_have_the_interpreter(cuda):
    """CuPy's calls let go of it, those of `Driver` do not."""
    runtime = CudaRuntime(0)
    cuda.calls.clear()
    runtime.copy(0x2000, 0x3000, 16, 7, may_wait=True)
    assert cuda.calls == ["memcpyAsync"]
    cuda.calls.clear()
    runtime.copy(0x2000, 0x3000, 16, 7)
    assert cuda.calls == ["cuMemcpyAsync"]


def test_dropped_events_are_used_again_and_the_driver_is_not_called(cuda):
    runtime = CudaRuntime(0)
    events = [runtime.record(7) for _ in range(400)]
    addresses = {event.address for event in events}
    cuda.calls.clear()
    del events
    gc.collect()
    assert not cuda.calls
    again = [runtime.record(7) for _ in range(400)]
    assert {event.address for event in again} == addresses


def test_events_belong_to_the_device_of_their_stream(cuda):
    runtimes = [CudaRuntime(0), CudaRuntime(1)]
    for current in runtimes:
        current.activate()
        for runtime in runtimes:
            event = runtime.record(7)
            assert cuda.devices_of_events[event.address] == runtime.device_id


def test_a_thread_without_a_device_makes_no_context_of_the_first(cuda):
    """Half a gigabyte of GPU 0 in each rank, and an error where that GPU is another program's."""
    runtime = CudaRuntime(1)
    contexts = []

    def work():
        runtime.free_pinned(runtime.allocate_pinned(64))
        runtime.record(runtime.acquire_stream())
        contexts.append(cuda.current_context)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert contexts == [0]
    assert cuda.contexts == {1}


def test_streams_of_another_device_are_waited_for(cuda):
    """An event can only be put into a stream of its own device; any stream may wait for it."""
    here, there = get_runtime(0), get_runtime(1)
    event = here.record(there.acquire_stream())
    assert cuda.devices_of_events[event.address] == 1
    here.wait(here.acquire_stream(), event)
    address = event.address
    del event
    assert there.record(there.acquire_stream()).address == address


def test_the_users_context_is_current_again(cuda):
    CudaRuntime(0).activate()
    before = cuda.current_context
    CudaRuntime(1).record(7)
    assert cuda.current_context == before != 0


_AT_EXIT = """
import ctypes
import sys
import threading
import pytest
from tests.support.gpu.cuda_library import install_fake_cuda
from headrace.tensors.gpu.cuda import CudaRuntime
from headrace.tensors.gpu.pinned import PinnedHostPool
from headrace.tensors.gpu.pool import StagingPool, STAGING_BYTES
from headrace.tensors.gpu.uploads import _Returning

patch = pytest.MonkeyPatch()
cuda = install_fake_cuda(patch)
runtime = CudaRuntime(0)
staging = StagingPool(runtime)
# Modules that somebody still has, here an extension, are emptied at the end, the last imported
# first: their names are None then. What is left in an early one is dropped behind that.
for name, module in list(sys.modules.items()):
    if name == "threading" or name.startswith("headrace.tensors.gpu"):
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(module))
threading.kept = (
    runtime.record(7),
    PinnedHostPool(runtime).empty((4,), "u1"),
    _Returning(staging, staging.take(2 * STAGING_BYTES)),
)
"""


def test_what_is_left_at_the_end_of_the_interpreter_is_dropped_in_silence():
    done = subprocess.run(
        [sys.executable, "-c", _AT_EXIT],
        cwd=_ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.fixture
def young_heap():
    """Keep the collector from what other tests have left: a fork would copy all of it."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


def _in_a_fork(work):
    """What `work` returns in a fork of this process: text."""
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forks in threaded programs
        child = os.fork()
    if child == 0:
        try:
            text = work()
        except BaseException as error:
            text = f"raised {error!r}"
        os.write(writer, text.encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as file:
        text = file.read()
    os.waitpid(child, 0)
    return text


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_fork_gives_nothing_back_to_cuda(young_heap, cuda):
    runtime = get_runtime(0)
    pool, staging = PinnedHostPool(runtime), StagingPool(runtime)
    kept = [pool.empty((1 << 20,), np.dtype(np.uint8)), runtime.record(7)]
    large = staging.take(2 * STAGING_BYTES)

    def work():
        cuda.calls.clear()
        kept.clear()
        gc.collect()
        pool.trim()
        staging.give_back(large)
        return f"called {cuda.calls}"

    assert _in_a_fork(work) == "called []"
    cuda.calls.clear()
    kept.clear()
    gc.collect()
    pool.trim()
    staging.give_back(large)
    assert cuda.calls == ["freeHost", "freeHost"], "the parent does"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_fork_that_uses_cuda_is_told_what_is_wrong(cuda):
    runtime = get_runtime(0)
    event = runtime.record(7)
    runtime.release_stream(runtime.acquire_stream())
    calls = {
        "get_runtime": lambda: get_runtime(0),
        "another device": lambda: get_runtime(1),
        "check_available": check_available,
        "current_device": current_device,
        "activate": runtime.activate,
        "active": runtime.active,
        "record": lambda: runtime.record(7),
        "wait": lambda: runtime.wait(7, event),
        "done": event.done,
        "synchronize": lambda: runtime.synchronize(7),
        "allocate": lambda: runtime.allocate(16),
        "allocate_pinned": lambda: runtime.allocate_pinned(16),
        "copy": lambda: runtime.copy(0x2000, 0x3000, 16, 7),
        "copy that waits": lambda: runtime.copy(0x2000, 0x3000, 16, 7, may_wait=True),
        "fill": lambda: runtime.fill(0x2000, 0, 16, 7),
    }

    def work():
        cuda.calls.clear()
        silent = []
        for name, call in calls.items():
            try:
                call()
            except GpuNotAvailableError as error:
                if f"process ({os.getpid()}) was forked" in str(error) and "spawn" in str(error):
                    continue
            silent.append(name)
        return f"{silent} {cuda.calls}"

    held = threading.Event()
    release = threading.Event()

    def hold():
        with runtime._lock:
            held.set()
            release.wait()

    thread = threading.Thread(target=hold)  # that the fork has not
    thread.start()
    held.wait()
    try:
        assert _in_a_fork(work) == "[] []"
    finally:
        release.set()
        thread.join()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_fork_of_a_process_where_another_library_used_cuda(cuda):
    def work():
        try:
            get_runtime(0)
        except GpuNotAvailableError as error:
            return str(error)
        return "nothing"

    assert "was forked from one that had used CUDA" in _in_a_fork(work)


class Compiler:
    """NVRTC, as far as it tells of itself."""

    def __init__(self, version, *known):
        self.getVersion = lambda: version
        self.getSupportedArchs = lambda: known


@pytest.fixture
def compiler(monkeypatch):
    def install(version, *known):
        nvrtc.architecture.cache_clear()
        monkeypatch.setattr(nvrtc, "_nvrtc", lambda: Compiler(version, *known))

    yield install
    nvrtc.architecture.cache_clear()


@pytest.mark.parametrize(
    ("capability", "expected"),
    [
        ((7, 5), "sm_75"),
        ((9, 0), "sm_90"),
        ((9, 1), "compute_90"),
        ((12, 1), "sm_121"),
        ((13, 0), "compute_121"),
    ],
)
def test_what_kernels_are_compiled_for(compiler, capability, expected):
    compiler((13, 0), 75, 80, 90, 100, 120, 121)
    assert nvrtc.architecture(capability) == expected


def test_gpus_older_than_the_compiler_are_refused(compiler):
    compiler((13, 0), 75, 80, 90)
    with pytest.raises(GpuNotAvailableError, match=r"capability 7\.0; .* 13\.0 .* 7\.5 .*cuda12\]"):
        nvrtc.architecture((7, 0))
    compiler((12, 9), 50, 52, 60, 90)
    with pytest.raises(GpuNotAvailableError, match=r"5\.0 and later\. To run on the CPU"):
        nvrtc.architecture((3, 5))
