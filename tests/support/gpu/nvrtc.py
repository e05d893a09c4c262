"""Kernels compiled for real GPUs, without one; warnings are errors.

``python -m tests.support.gpu.nvrtc [file.cu ...]`` prints what the kernels on the list need of a
device: registers, shared memory, and memory for what the registers do not hold.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import re
import sys
from collections.abc import Iterable
from typing import Any

from penstock.tensors.gpu.nvrtc import OPTIONS, _include_options
from tests.support.gpu.cpu_functions import cache_folder

ARCHITECTURES = ("sm_75", "sm_80", "sm_90", "sm_100")
"""Turing, Ampere, Hopper, Blackwell."""

_WARNING = re.compile(r"^.*\bwarning\b.*$", re.MULTILINE | re.IGNORECASE)
_ENTRY = re.compile(r"Compiling entry function '(\S+)'")
_NUMBERS = {
    "registers": re.compile(r"Used (\d+) registers"),
    "shared_bytes": re.compile(r"(\d+) bytes smem"),
    "stack_bytes": re.compile(r"(\d+) bytes stack frame"),
    "spilled_bytes": re.compile(r"(\d+) bytes spill stores"),
}


def missing() -> str | None:
    """What is not installed that compiling needs; `None` if all is.

    ``PENSTOCK_REQUIRE_NVRTC=1`` makes it an error.
    """
    for module in ("cupy", "cuda.pathfinder", "nvidia.cu13"):
        try:
            found = importlib.util.find_spec(module)
        except ModuleNotFoundError:
            found = None
        if found is None:
            if os.environ.get("PENSTOCK_REQUIRE_NVRTC") == "1":
                raise ModuleNotFoundError(f"{module}, and PENSTOCK_REQUIRE_NVRTC=1")
            return f"{module} is not installed"
    return None


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
    for source, names in by_source.items():
        for name, found in _compiled(source, names, arch).items():
            path = _path(source, name, arch)
            part = path.with_suffix(f".{os.getpid()}")
            part.write_text(json.dumps(found))
            part.replace(path)


def resources(source: str, name: str, arch: str) -> dict[str, int]:
    """What a kernel needs, by the names in `_NUMBERS`."""
    check_compiles([(source, name)], arch)
    found: dict[str, int] = json.loads(_path(source, name, arch).read_text())
    return found


def _path(source: str, name: str, arch: str) -> Any:
    from cupy.cuda import nvrtc

    text = "\0".join([source, name, arch, *OPTIONS, str(nvrtc.getVersion())])
    return cache_folder("nvrtc") / hashlib.sha256(text.encode()).hexdigest()[:32]


def _compiled(source: str, names: list[str], arch: str) -> dict[str, dict[str, int]]:
    from cupy.cuda import nvrtc

    program = nvrtc.createProgram(source, "program.cu", (), ())
    try:
        for name in names:
            nvrtc.addNameExpression(program, name)
        options = (f"-arch={arch}", "-Xptxas=-v", *OPTIONS, *_include_options())
        try:
            nvrtc.compileProgram(program, options)
        except nvrtc.NVRTCError as error:
            log = nvrtc.getProgramLog(program)
            raise RuntimeError(f"{names} do not compile for {arch}:\n{log}") from error
        log = nvrtc.getProgramLog(program)
        warnings = _WARNING.findall(log.replace("Remark: The warnings can be", ""))
        if warnings:
            raise RuntimeError(f"{names}, for {arch}, compile with warnings:\n{log}")
        symbols = {name: nvrtc.getLoweredName(program, name) for name in names}
    finally:
        nvrtc.destroyProgram(program)
    found = _resources(log)
    return {
        name: found.get(s.decode() if isinstance(s, bytes) else s, {})
        for name, s in symbols.items()
    }


def _resources(log: str) -> dict[str, dict[str, int]]:
    """By symbol."""
    parts = _ENTRY.split(log)
    found = {}
    for symbol, text in zip(parts[1::2], parts[2::2], strict=True):
        matches = {key: pattern.search(text) for key, pattern in _NUMBERS.items()}
        found[symbol] = {key: int(m[1]) if m else 0 for key, m in matches.items()}
    return found


def _main(files: list[str]) -> None:
    from penstock.kernels.gpu.program import program
    from tests.support.gpu.recording import listed

    for file, name in listed():
        if files and file not in files:
            continue
        needs = resources(program(file), name, "sm_90")
        print(file, name, *(f"{key}={value}" for key, value in needs.items()))


if __name__ == "__main__":
    _main(sys.argv[1:])
