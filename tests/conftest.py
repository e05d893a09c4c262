"""What all test suites share: hypothesis profiles, GPU tests, and seeds that do not leak."""

from __future__ import annotations

import gc
import itertools
import os
import random
import signal
from collections.abc import Iterator

import hypothesis
import numpy as np
import pytest

from tests.support.finalizers import watch_finalizers
from tests.support.sweeps import is_nightly

watch_finalizers()  # before anything of the engine is imported

hypothesis.settings.register_profile("default", deadline=None, max_examples=30)
hypothesis.settings.register_profile(
    "ci", deadline=None, max_examples=20, derandomize=True, print_blob=True
)
hypothesis.settings.register_profile("long", deadline=None, max_examples=1000)
hypothesis.settings.load_profile(
    os.environ.get("HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") else "default")
)


# JAX looks at this when it makes its devices, and any test of a process may be the first to use it.
VIRTUAL_DEVICES = "--xla_force_host_platform_device_count=8"
if VIRTUAL_DEVICES not in os.environ.get("XLA_FLAGS", ""):
    os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {VIRTUAL_DEVICES}".strip()

# On processors with AVX512-FP16, oneDNN's generator of depthwise convolutions does not end for
# kernels of 23 x 23 float16, which torchvision's blur asks PyTorch for.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")

# Programs that tests run say nothing, whether or not their kernels were compiled before.
os.environ.setdefault("HEADRACE_COMPILATION_NOTICE", "off")

# Most pipelines of tests have a few small samples, for which processes would start and end in vain.
# Those of workers ask for them, and `test:processes` runs others with them.
os.environ.setdefault("HEADRACE_WORKERS", "threads")

# A shell that starts tests in its background has them, and all that they start, ignore Ctrl-C.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Of a GPU that many test processes share, it would take three quarters.
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")


# `test:chunks` asks for them; the engine is not imported otherwise.
if os.environ.get("HEADRACE_TEST_CHUNKS"):
    from tests.support import chunks

    chunks.set_chunks(chunks.SIZES)


def _has_gpu() -> bool:
    try:
        import cupy
    except ImportError:
        return False
    return bool(cupy.is_available())


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what sweeps leave to nightly runs."""
    sweeps: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("sweep") is not None:
            sweeps.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for name, cases in sweeps.items():
        # A value is the same object in all cases, and need not be hashable.
        marker = cases[0].get_closest_marker("sweep")
        values = [{n: id(v) for n, v in item.callspec.params.items()} for item in cases]
        for item in itertools.compress(cases, is_nightly(name, values, **marker.kwargs)):
            item.add_marker("nightly")


@pytest.fixture(autouse=True)
def _workers(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let tests that look into threads have some where `test:processes` asks for processes."""
    if request.node.get_closest_marker("in_threads") is not None:
        monkeypatch.setenv("HEADRACE_WORKERS", "threads")


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip tests of the GPU on machines without one, unless that must not happen."""
    if item.get_closest_marker("gpu") is None or _has_gpu():
        return
    reason = "needs a CUDA device and CuPy"
    if os.environ.get("HEADRACE_REQUIRE_GPU") == "1":
        pytest.fail(f"{reason}, and HEADRACE_REQUIRE_GPU=1 forbids to skip")
    pytest.skip(reason)


@pytest.fixture(autouse=True, scope="module")
def _older_objects_are_frozen() -> None:
    """Collecting garbage, as many tests do, looks at objects of its own module only.

    All collected tests and all imported libraries are millions of objects: half a second a time.
    """
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _global_random_state() -> Iterator[None]:
    """Give every test the same state of the global generators, and leave none behind."""
    before = random.getstate(), np.random.get_state()  # noqa: NPY002 - the global one is meant
    random.seed(0)
    np.random.seed(0)  # noqa: NPY002
    yield
    random.setstate(before[0])
    np.random.set_state(before[1])  # noqa: NPY002


@pytest.fixture
def gpu_is_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that was told to use no GPU, and has not warned of that yet."""
    from headrace.executor import fallback
    from headrace.tensors.gpu import runtime

    monkeypatch.setenv("HEADRACE_GPU", "never")
    monkeypatch.setattr(fallback, "_told", False)
    monkeypatch.setattr(runtime, "_is_available", None)


@pytest.fixture(scope="module")
def roomy_caches() -> Iterator[None]:
    """Let caches take all of the disk, of which less than a tenth may be free."""
    from headrace.operators.support import disk_room

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(disk_room, "FREE_SHARE", 0.0)
        yield
