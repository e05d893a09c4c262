"""Compiles CUDA C++ for a GPU, which need not be there, and keeps the results on disk."""

from __future__ import annotations

import contextlib
import hashlib
from functools import cache
from pathlib import Path
from typing import Any

from headrace import kernel_cache
from headrace._optional import import_optional
from headrace.compilation_notice import compiling
from headrace.errors import GpuNotAvailableError, MissingDependencyError

OPTIONS = ("-std=c++17", "--fmad=false", "--extra-device-vectorization")
"""Compiler options of kernels. Multiplications and additions are not contracted, so that a value
does not depend on which operators were fused into a kernel; where a contraction is wanted, it is
written out."""
_INSTALL = "headrace[cuda13]"


class CompilationError(RuntimeError):
    """A program does not compile; the message is the compiler's."""


@cache
def _include_options() -> tuple[str, ...]:
    """Return the include folders of CUDA (``cuda_fp16.h``) and of its C++ library."""
    import cupy
    from cuda.pathfinder import find_nvidia_header_directory

    folders = []
    runtime = find_nvidia_header_directory("cudart")
    if runtime is None:
        raise MissingDependencyError(
            "Compiling GPU kernels needs the headers of the CUDA runtime, which are not installed. "
            f"Run `pip install '{_INSTALL}'`."
        )
    folders.append(runtime)
    folders.append(str(Path(cupy.__file__).parent / "_core/include/cupy/_cccl/libcudacxx"))
    return tuple(f"-I{folder}" for folder in folders)


def _nvrtc() -> Any:
    return import_optional("cupy", purpose="Compiling GPU kernels", install=_INSTALL).cuda.nvrtc


@cache
def architecture(compute_capability: tuple[int, int]) -> str:
    """Return the compilation target for a GPU of this compute capability.

    For devices that the compiler does not know, it is the intermediate code of the newest older one
    that it does, which the driver finishes.
    """
    wanted = 10 * compute_capability[0] + compute_capability[1]
    known = sorted(int(a) for a in _nvrtc().getSupportedArchs())
    if wanted in known:
        return f"sm_{wanted}"
    below = [a for a in known if a < wanted]
    if not below:
        major, minor = _nvrtc().getVersion()
        older = (
            "CUDA 12 makes code for older ones: `pip install 'headrace[cuda12]'` in an environment "
            "without `headrace[cuda13]`. "
            if major > 12
            else ""
        )
        raise GpuNotAvailableError(
            f"This GPU has compute capability {compute_capability[0]}.{compute_capability[1]}; the "
            f"compiler of CUDA {major}.{minor} makes code for {known[0] // 10}.{known[0] % 10} and "
            f"later. {older}To run on the CPU, build the pipeline with device_id=None."
        )
    return f"compute_{below[-1]}"


def compiled(source: str, name: str, arch: str) -> tuple[bytes, str]:
    """Machine code of the program `source` for `arch`, and how it calls the kernel `name`."""
    version = _nvrtc().getVersion()
    key = "\0".join((source, name, arch, str(version), *OPTIONS))
    file, folders = f"{hashlib.sha256(key.encode()).hexdigest()[:40]}.cubin", kernel_cache.folders()
    lowered, _, code = (kernel_cache.find(file, folders) or b"").partition(b"\n")
    if lowered and code:
        with contextlib.suppress(ValueError):
            return code, lowered.decode()
    with compiling:
        code, symbol = _compile(source, name, arch)
    kernel_cache.keep(file, symbol.encode() + b"\n" + code, folders)
    return code, symbol


def _compile(source: str, name: str, arch: str) -> tuple[bytes, str]:
    nvrtc = _nvrtc()
    program = nvrtc.createProgram(source, "headrace.cu", (), ())
    try:
        nvrtc.addNameExpression(program, name)
        try:
            nvrtc.compileProgram(program, (f"-arch={arch}", *OPTIONS, *_include_options()))
        except nvrtc.NVRTCError as error:
            log = nvrtc.getProgramLog(program)
            raise CompilationError(f"`{name}` does not compile for {arch}:\n{log}") from error
        lowered = nvrtc.getLoweredName(program, name)
        if arch.startswith("sm_"):
            code = nvrtc.getCUBIN(program) + b"\0"  # CuPy cuts off the last byte
        else:
            code = nvrtc.getPTX(program)
    finally:
        nvrtc.destroyProgram(program)
    symbol = lowered.decode() if isinstance(lowered, bytes) else lowered
    return (code.encode() if isinstance(code, str) else code), symbol
