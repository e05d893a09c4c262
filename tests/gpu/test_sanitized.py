"""Kernels under the address sanitizer: they read and write nothing but what they are given.

The emulated GPU finds writes behind the end of a piece of memory by itself; reads, and what goes
wrong inside a piece, only this shows. Samples lie in pieces of their own here.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[2]
_OVERREAD = """
import numpy as np
from tests.support.gpu.runtime import EmulatedRuntime

gpu = EmulatedRuntime(late=False)
gpu.activate()
out, source = gpu.allocate(4), gpu.allocate(12)
kernel = gpu.function("__global__ void copy(int* out, const int* in) { *out = in[%d]; }", "copy")
kernel((1, 1, 1), (1, 1, 1), (np.uint64(out), np.uint64(source)), 0, 1)
gpu.check()
print("all is well")
"""


@pytest.fixture(autouse=True)
def gpu_runtime() -> None:
    """All runs in processes of their own."""


@functools.cache
def _libraries() -> str | None:
    """The sanitizer, which must be in the process before anything else, and what C++ throws with:
    the sanitizer looks for it at its start, and a library that throws later ends the process.
    """
    found = []
    for name in ("libasan.so", "libstdc++.so.6"):
        try:
            path = subprocess.run(
                ["g++", f"-print-file-name={name}"], capture_output=True, text=True, check=True
            ).stdout.strip()
        except (OSError, subprocess.CalledProcessError):
            return None
        if not os.path.isabs(path):
            return None
        found.append(path)
    return " ".join(found)


def _sanitized(*arguments: str) -> subprocess.CompletedProcess[str]:
    libraries = _libraries()
    if libraries is None:
        pytest.skip("g++ has no address sanitizer here")
    environment = {
        **os.environ,
        "LD_PRELOAD": libraries,
        "ASAN_OPTIONS": "detect_leaks=0:detect_stack_use_after_return=0",
        "HEADRACE_TEST_SANITIZE": "address",
        "PYTHONPATH": os.pathsep.join(p for p in sys.path if p),
        # CUDA, JAX's too, wants addresses that the sanitizer keeps for itself.
        "CUDA_VISIBLE_DEVICES": "",
        "JAX_PLATFORMS": "cpu",
        # Plugins that happen to be installed warn of one another, and warnings are errors.
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    }
    environment.pop("HEADRACE_REQUIRE_GPU", None)
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=_ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("index", [0, 2])
def test_what_is_right_passes(index: int) -> None:
    done = _sanitized("-c", _OVERREAD % index)
    assert done.stdout.strip() == "all is well", done.stderr


@pytest.mark.parametrize("index", [3, -1])
def test_reads_beyond_the_memory_are_found(index: int) -> None:
    done = _sanitized("-c", _OVERREAD % index)
    assert done.returncode
    assert "heap-buffer-overflow" in done.stderr


@pytest.mark.parametrize(
    "chosen",
    ["sanitize and not nightly", pytest.param("sanitize", marks=pytest.mark.nightly)],
    ids=["few", "all"],
)
def test_kernels(chosen: str) -> None:
    alone = not _in_worker() and importlib.util.find_spec("xdist") is not None
    parallel = ["-p", "xdist.plugin", "-n", "2"] if alone else []
    done = _sanitized(
        *("-m", "pytest", "tests/gpu", "-m", chosen, "-q", "-x", "-p", "no:cacheprovider"),
        *parallel,
    )
    assert done.returncode in (0, 5), (done.stdout + done.stderr)[-8000:]  # 5: none collected


def _in_worker() -> bool:
    return "PYTEST_XDIST_WORKER" in os.environ
