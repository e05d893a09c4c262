"""Tests of the GPU backend run on the emulated GPU, and on a real one where there is one."""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.tensors.gpu.runtime import Runtime, install_runtime
from tests.support.gpu import nvrtc
from tests.support.gpu.cpu_functions import missing, sanitizing
from tests.support.gpu.recording import take_recorded
from tests.support.gpu.runtime import EmulatedRuntime, current_emulated

_SANITIZED_EACH = 3


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """With the address sanitizer, which is slow, the first few tests of each module about kernels
    run, each with its first parameters; others say themselves that they are worth it. All but one
    test of a module about kernels, and all but the first parameters of the others, are nightly.
    """
    if not sanitizing():
        return
    seen: dict[Path, set[str]] = {}
    marked: set[str] = set()
    for item in items:
        function = item.nodeid.partition("[")[0]
        if item.get_closest_marker("sanitize") is not None:
            if function in marked:
                item.add_marker("nightly")
            marked.add(function)
        if item.path.parent.name != "kernels" or item.path.stem == "test_all_compile":
            continue
        functions = seen.setdefault(item.path, set())
        if function not in functions and len(functions) < _SANITIZED_EACH:
            if functions:
                item.add_marker("nightly")
            functions.add(function)
            item.add_marker("sanitize")


@functools.cache
def _cuda_runtime() -> Runtime:
    from headrace.tensors.gpu.cuda import CudaRuntime

    return CudaRuntime(0)


def _has_device() -> bool:
    """Whether the driver shows a GPU. Without CuPy, which is not to be imported where none is."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    count = ctypes.c_int()
    return (
        not driver.cuInit(0)
        and not driver.cuDeviceGetCount(ctypes.byref(count))
        and count.value > 0
    )


@functools.cache
def _runtimes() -> tuple[str, ...]:
    if sanitizing():
        return ("emulated",)
    if os.environ.get("HEADRACE_REQUIRE_GPU") == "1":
        return "emulated", "cuda"
    found = importlib.util.find_spec("cupy") is not None and _has_device()
    return ("emulated", "cuda") if found else ("emulated",)


@pytest.fixture(autouse=True, params=_runtimes())
def gpu_runtime(request: pytest.FixtureRequest) -> Iterator[Runtime]:
    """GPU 0, for every test below this folder: emulated, then real."""
    if request.param == "cuda":
        runtime = _cuda_runtime()
        runtime.activate()
        install_runtime(lambda device_id: runtime)
        yield runtime
        install_runtime(None)
        return
    if request.node.get_closest_marker("gpu") is not None:
        pytest.skip("for a real GPU: CuPy's arrays are not in the memory of the emulated one")
    yield from _emulated()


def _emulated() -> Iterator[EmulatedRuntime]:
    reason = missing()
    if reason is not None:
        pytest.skip(reason)
    devices: dict[int, EmulatedRuntime] = {}

    def make(device_id: int) -> EmulatedRuntime:
        return devices.setdefault(device_id, EmulatedRuntime(device_id))

    install_runtime(make, current_emulated)
    runtime = make(0)
    runtime.activate()
    yield runtime
    install_runtime(None)
    for device in devices.values():
        device.check()


@pytest.fixture(autouse=True, scope="module")
def _kernels_compile() -> Iterator[None]:
    """With ``HEADRACE_TEST_NVRTC=each``, at the end of a module, compile for real GPUs what ran on
    the emulated one, as far as PTX.
    """
    yield
    kernels = take_recorded()
    if kernels and os.environ.get("HEADRACE_TEST_NVRTC") == "each" and nvrtc.missing() is None:
        nvrtc.check_compiles(kernels, "compute_90")


@pytest.fixture
def emulated_gpu(gpu_runtime: Runtime) -> EmulatedRuntime:
    """The emulated GPU, for tests that look into it; skips the real one."""
    if not isinstance(gpu_runtime, EmulatedRuntime):
        pytest.skip("looks into the emulated GPU")
    return gpu_runtime
