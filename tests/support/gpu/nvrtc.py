"""Kernels compiled for real GPUs, without one; warnings are errors.

``python -m tests.support.gpu.nvrtc [file.cu ...]`` prints what the kernels on the list need of a
device: registers, shared memory, and memory for what the registers do not hold.

The compiler is called by way of CuPy, in another process: what a test sees must not depend on
whether CuPy has been imported before.
"""

from __future__ import annotations

import atexit
import functools
import hashlib
import importlib.metadata
import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from headrace.tensors.gpu.nvrtc import OPTIONS
from tests.support.gpu.cpu_functions import cache_folder
from tests.support.sweeps import always

ARCHITECTURES = ("sm_75", "sm_80", "sm_90", "sm_100")
"""Turing, Ampere, Hopper, Blackwell."""
EACH_ARCHITECTURE = always("sm_75", "sm_90", of=ARCHITECTURES)
"""The same as a parameter of tests."""

_ROOT = Path(__file__).parents[3]


def missing() -> str | None:
    """What is not installed that compiling needs; `None` if all is.

    ``HEADRACE_REQUIRE_NVRTC=1`` makes it an error.
    """
    if importlib.util.find_spec("cupy") and _compiler_version():
        return None
    reason = "CuPy and NVRTC are not installed"
    if os.environ.get("HEADRACE_REQUIRE_NVRTC") == "1":
        raise ModuleNotFoundError(f"{reason}, and HEADRACE_REQUIRE_NVRTC=1")
    return reason


def check_compiles(kernels: Iterable[tuple[str, str]], arch: str) -> None:
    """Compile kernels, each a text and a name, unless that is known to work.

    Raises
    ------
    RuntimeError
        With the compiler's words, if one does not, or not without warnings.
    """
    by_source: dict[str, list[str]] = {}
    for source, name in kernels:
        if not _path(source, name, arch).exists():
            by_source.setdefault(source, []).append(name)
    if not by_source:
        return
    jobs = [{"source": s, "names": names, "arch": arch} for s, names in by_source.items()]
    errors = []
    for job, found in zip(jobs, _run(jobs), strict=True):
        if "error" in found:
            errors.append(found["error"])
            continue
        for name, needs in found["needs"].items():
            path = _path(str(job["source"]), name, arch)
            part = path.with_suffix(f".{os.getpid()}")
            part.write_text(json.dumps(needs))
            part.replace(path)
    if errors:
        raise RuntimeError("\n\n".join(errors))


def needs_of(source: str, name: str, arch: str) -> dict[str, int]:
    """What a kernel needs: ``"registers"``, ``"shared_bytes"``, ..."""
    check_compiles([(source, name)], arch)
    found: dict[str, int] = json.loads(_path(source, name, arch).read_text())
    return found


@functools.cache
def known_architectures() -> list[str]:
    """What the installed compiler can compile for: older ones do not know the newest GPUs."""
    found: list[str] = _run("architectures")
    return found


def _run(request: Any) -> list[Any]:
    """The answer of the process that has imported CuPy, which takes it most of a second."""
    process = _process()
    print(json.dumps(request), file=process.stdin, flush=True)
    answer = process.stdout.readline()  # type: ignore[union-attr]
    if not answer:
        raise RuntimeError(f"the process that compiles has ended with {process.wait()}")
    found: list[Any] = json.loads(answer)
    return found


@functools.cache
def _process() -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.support.gpu.nvrtc_process"],
        cwd=_ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    atexit.register(_end, process, os.getpid())
    return process


def _end(process: subprocess.Popen[str], pid: int) -> None:
    if pid == os.getpid():  # forks have it, too
        process.kill()
        process.communicate()


@functools.cache
def _compiler_version() -> str:
    for name in ("nvidia-cuda-nvrtc", "nvidia-cuda-nvrtc-cu12"):
        try:
            return importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return ""


def _path(source: str, name: str, arch: str) -> Path:
    text = "\0".join([source, name, arch, *OPTIONS, _compiler_version()])
    return cache_folder("nvrtc") / hashlib.sha256(text.encode()).hexdigest()[:32]


def _main(files: list[str]) -> None:
    from headrace.kernels.gpu.program import program
    from tests.support.gpu.recording import listed

    kernels = [(file, name) for file, name in listed() if not files or file in files]
    check_compiles([(program(file), name) for file, name in kernels], "sm_90")
    for file, name in kernels:
        needs = needs_of(program(file), name, "sm_90")
        print(file, name, *(f"{key}={value}" for key, value in needs.items()))


if __name__ == "__main__":
    _main(sys.argv[1:])
