"""Kernels built by g++: the same program text that NVRTC gets, run by a thread of the host.

Shared libraries, one a kernel, are kept below ``$HEADRACE_TEST_CACHE`` (the folder for temporary
files, when not set) under a hash of all that they are made from. ``HEADRACE_TEST_SANITIZE=address``
builds them with the address sanitizer, which has to be preloaded then.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import mmap
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

import numpy as np

_HERE = Path(__file__).parent
_WAITING = re.compile(
    r"\b__(syncthreads|syncwarp|shfl|ballot_sync|any_sync|all_sync|match_any)", re.ASCII
)
_FLAGS = [
    # A kernel is compiled once and runs for milliseconds.
    *("-std=c++17", "-O1", "-march=native", "-fPIC", "-w", "-fmax-errors=5"),
    *("-ffp-contract=off", "-fno-math-errno"),
    # Kernels of one name in several programs must not find one another's static memory.
    *("-fvisibility=hidden", "-fno-gnu-unique"),
    "-fsanitize=alignment,bounds,integer-divide-by-zero,shift-exponent",
    *("-fno-sanitize-recover=all", "-U_FORTIFY_SOURCE", "-DHEADRACE_ON_CPU"),
]
_HEADER = "cuda_on_cpu.h"
# The checks call what launch.h defines, and the address sanitizer is preloaded: their libraries are
# not linked.
_LIBRARIES = ["-shared", "-nodefaultlibs", "-lm", "-lc", "-lgcc"]

MAX_DYNAMIC_SHARED_BYTES = 60 << 10
_MAX_GRID = (2**31 - 1, 65535, 65535)
_MAX_BLOCK = (1024, 1024, 64)
_MAX_THREADS = 1024
_STACK_BYTES = 64 << 10

_BOUNDS = re.compile(
    r"(template\s*<[^<>]*>)?\s*"
    r"__global__\s+void\s+__launch_bounds__\s*\(((?:[^(),]|\([^()]*\))*)(?:,[^()]*)?\)\s*(\w+)\s*\("
)

_launching = threading.Lock()
"""Held during a launch: kernels have static memory, and threads' stacks are shared by all."""


class KernelError(RuntimeError):
    """A launch or an access that a GPU would not have accepted."""


def missing() -> str | None:
    """Why kernels cannot be built here; `None` if they can."""
    if sys.platform != "linux":
        return "the emulated GPU needs Linux"
    return None if shutil.which("g++") else "the emulated GPU needs g++"


def sanitizing() -> bool:
    """Whether kernels are built with the address sanitizer."""
    return os.environ.get("HEADRACE_TEST_SANITIZE") == "address"


def function_of(name: str) -> str:
    """``"fill"`` of ``"ns::fill<float>"``."""
    return name.split("<")[0].split("::")[-1].strip()


def cache_folder(kind: str) -> Path:
    """Where things of a kind are kept that are expensive to make."""
    root = os.environ.get("HEADRACE_TEST_CACHE")
    user = os.getuid() if hasattr(os, "getuid") else 0  # nobody loads what others have built
    base = Path(root) if root else Path(tempfile.gettempdir()) / f"headrace-tests-{user}"
    folder = base / kind
    folder.mkdir(parents=True, exist_ok=True)
    return folder


class CpuFunction:
    """One kernel. Arguments are NumPy scalars of exactly the types of its parameters."""

    def __init__(self, source: str, name: str) -> None:
        self.name = name
        self._lines = source.splitlines()
        library = ctypes.CDLL(str(_built(source, name)))
        library.headrace_kinds.restype = ctypes.c_char_p
        library.headrace_sizes.restype = ctypes.POINTER(ctypes.c_uint)
        self._most_threads: int = library.headrace_most_threads()
        self._launch = library.headrace_launch
        self._launch.restype = ctypes.c_char_p
        self.kinds: str = library.headrace_kinds().decode()
        self.sizes: list[int] = library.headrace_sizes()[: len(self.kinds)]

    def packed(self, args: tuple[Any, ...]) -> list[bytes]:
        """The bytes of the arguments, checked against the parameters."""
        if len(args) != len(self.kinds):
            raise KernelError(
                f"{self.name} has {len(self.kinds)} parameters, got {len(args)} arguments"
            )
        return [self._packed(i, value) for i, value in enumerate(args)]

    def _packed(self, index: int, value: Any) -> bytes:
        kind, size = self.kinds[index], self.sizes[index]
        if not isinstance(value, np.generic):
            raise KernelError(
                f"{self.name}, argument {index}: {value!r} of {type(value)} is no NumPy scalar"
            )
        expected = {"p": "u"}.get(kind, kind)
        if value.dtype.kind != expected or value.dtype.itemsize != size:
            wanted = {"p": "an address, uint64"}.get(kind, f"kind '{kind}' of {size} bytes")
            raise KernelError(
                f"{self.name}, argument {index}: {value!r} is {value.dtype}, the parameter is "
                f"{wanted}"
            )
        return value.tobytes()

    def check_launch(
        self, grid: tuple[int, ...], block: tuple[int, ...], shared_bytes: int
    ) -> None:
        """Check the limits that a GPU has."""
        threads = int(np.prod(block))
        for what, got, most in (("grid", grid, _MAX_GRID), ("block", block, _MAX_BLOCK)):
            if len(got) != 3 or any(not 1 <= g <= m for g, m in zip(got, most, strict=True)):
                raise KernelError(f"{self.name}: {what} is {got}, at most {most} is possible")
        if threads > self._most_threads:
            raise KernelError(
                f"{self.name}: {threads} threads in a block, limit {self._most_threads}"
            )
        if not 0 <= shared_bytes <= MAX_DYNAMIC_SHARED_BYTES:
            raise KernelError(
                f"{self.name}: {shared_bytes} bytes of dynamic shared memory, limit "
                f"{MAX_DYNAMIC_SHARED_BYTES}"
            )

    def run(
        self,
        grid: tuple[int, ...],
        block: tuple[int, ...],
        packed: list[bytes],
        shared_bytes: int = 0,
    ) -> None:
        """Launch, and wait for the end."""
        buffers = [ctypes.create_string_buffer(value, max(len(value), 1)) for value in packed]
        addresses = (ctypes.c_void_p * len(buffers))(*[ctypes.addressof(b) for b in buffers])
        with _launching:
            message = self._launch(
                (ctypes.c_uint * 3)(*grid),
                (ctypes.c_uint * 3)(*block),
                ctypes.c_size_t(shared_bytes),
                addresses,
                ctypes.c_void_p(_stacks()),
                ctypes.c_size_t(_stack_bytes()),
            )
        if message is not None:
            raise KernelError(self._explained(message.decode()))

    def __call__(
        self,
        grid: tuple[int, ...],
        block: tuple[int, ...],
        args: tuple[Any, ...],
        shared_bytes: int = 0,
    ) -> None:
        """Check everything, launch, and wait for the end."""
        self.check_launch(grid, block, shared_bytes)
        self.run(grid, block, self.packed(args), shared_bytes)

    def _explained(self, message: str) -> str:
        line = re.match(r"line (\d+):", message)
        number = int(line[1]) if line else 0
        text = f"\n    {self._lines[number - 1].strip()}" if 0 < number <= len(self._lines) else ""
        return f"{self.name}: {message}{text}"


@functools.cache
def cpu_function(source: str, name: str) -> CpuFunction:
    """The kernel `name`, maybe a template with its arguments, of a program.

    Raises
    ------
    RuntimeError
        With the compiler's words, if it does not compile.
    """
    return CpuFunction(source, name)


def _built(source: str, name: str) -> Path:
    flags = list(_FLAGS)
    if _WAITING.search(source):
        flags.append("-DHEADRACE_FIBERS")
    if sanitizing():
        flags += ["-fsanitize=address", "-g", "-fno-omit-frame-pointer"]
    text = (
        f'#line 1 "program"\n{source}\n{_bound(source, name)}\n'
        f"EMULATED_EXPORT(headrace_bound, &{name})\n"
    )
    key = hashlib.sha256("\0".join([text, *flags, *_LIBRARIES, _surroundings()]).encode())
    target = cache_folder("kernels") / f"{key.hexdigest()[:32]}.so"
    if target.exists():
        return target
    with tempfile.NamedTemporaryFile(dir=target.parent, suffix=".part", delete=False) as part:
        pass
    try:
        included = [f"-I{_compiled_headers(tuple(flags))}", "-include", _HEADER]
        command = [*flags, *included, "-x", "c++", "-", "-o", part.name, *_LIBRARIES]
        done = _run_compiler(command, text)
        if done.returncode:
            raise RuntimeError(f"g++ does not compile {name}:\n{done.stderr}")
        os.replace(part.name, target)
    finally:
        Path(part.name).unlink(missing_ok=True)
    return target


@functools.cache
def _compiled_headers(flags: tuple[str, ...]) -> Path:
    """A folder with the headers and their precompiled form, which g++ takes by itself."""
    key = hashlib.sha256("\0".join([*flags, _surroundings()]).encode()).hexdigest()[:32]
    folder = cache_folder("headers") / key
    if not folder.exists():
        part = Path(tempfile.mkdtemp(dir=folder.parent))
        shutil.copy(_HERE / _HEADER, part)
        shutil.copytree(_HERE / "cuda_on_cpu", part / "cuda_on_cpu")
        header = part / _HEADER
        done = _run_compiler([*flags, "-x", "c++-header", str(header), "-o", f"{header}.gch"])
        if done.returncode:
            raise RuntimeError(f"g++ does not compile {_HEADER}:\n{done.stderr}")
        try:
            part.rename(folder)
        except OSError:  # another process was faster
            shutil.rmtree(part)
    return folder


def _run_compiler(arguments: list[str], text: str = "") -> subprocess.CompletedProcess[str]:
    # What is preloaded for the sanitizer is for this process only.
    environment = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
    return subprocess.run(
        ["g++", *arguments],
        input=text,
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )


def _bound(source: str, name: str) -> str:
    """Definition of how many threads a block may have, which may depend on template arguments."""
    found = {f: (template, bound) for template, bound, f in _BOUNDS.findall(source)}
    template, bound = found.get(function_of(name), ("", str(_MAX_THREADS)))
    arguments = name[name.index("<") :] if template else ""
    return (
        f"{template} constexpr unsigned headrace_bound_of() {{ return {bound}; }}\n"
        f"static const unsigned headrace_bound = headrace_bound_of{arguments}();"
    )


@functools.cache
def _surroundings() -> str:
    """What a library depends on besides its text: the headers, the compiler, the processor."""
    headers = [_HERE / "cuda_on_cpu.h", *sorted((_HERE / "cuda_on_cpu").glob("*.h"))]
    version = subprocess.run(["g++", "--version"], capture_output=True, text=True, check=True)
    try:
        cpu = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:  # not Linux
        cpu = ""
    flags = re.search(r"^(flags|Features)\s*:.*$", cpu, re.MULTILINE)
    return "\0".join([h.read_text() for h in headers] + [version.stdout, flags[0] if flags else ""])


def _stack_bytes() -> int:
    return _STACK_BYTES * (4 if sanitizing() else 1)


@functools.cache
def _stack_memory() -> mmap.mmap:
    return mmap.mmap(-1, _MAX_THREADS * _stack_bytes())


@functools.cache
def _stacks() -> int:
    return ctypes.addressof(ctypes.c_char.from_buffer(_stack_memory()))
