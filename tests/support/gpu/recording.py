"""Which kernels tests have used, so that all of them can be shown to compile for real GPUs.

Within a process, `take_recorded` gives those that are new. What belongs to a file of the package is
kept on disk as well, whatever process it was; ``python -m tests.support.gpu.recording`` makes the
list ``tests/gpu/kernels/expressions.txt`` of it: one expression for each kernel of each program.
"""

from __future__ import annotations

import functools
import hashlib
import re
import threading
from pathlib import Path

from headrace.kernels.gpu.program import program
from tests.support.gpu.cpu_functions import cache_folder, function_of

SOURCES = Path(__file__).parents[3] / "packages/core/src/headrace/kernels/gpu/cuda"
LISTED = Path(__file__).parents[2] / "gpu/kernels/expressions.txt"

_KERNEL = re.compile(
    r"__global__\s+void\s+(?:__launch_bounds__\s*\((?:[^()]|\([^()]*\))*\)\s*)?(\w+)\s*\("
)
_INCLUDE = re.compile(r'^#include "(\w+\.cuh?)"$', re.MULTILINE)

_lock = threading.Lock()
_new: set[tuple[str, str]] = set()
_seen: set[tuple[str, str]] = set()


def record(source: str, name: str) -> None:
    """Note that the kernel `name` of the program `source` is in use."""
    with _lock:
        if (source, name) not in _seen:
            _seen.add((source, name))
            _new.add((source, name))


def take_recorded() -> list[tuple[str, str]]:
    """Text and name of each kernel recorded since the last call."""
    with _lock:
        taken = sorted(_new)
        _new.clear()
    for source, name in taken:
        file = _files().get(source)
        if file is not None:
            key = hashlib.sha256(f"{source}\0{name}".encode()).hexdigest()[:32]
            (cache_folder("recorded") / key).write_text(f"{_digest(source)}\t{file}\t{name}")
    return taken


@functools.cache
def _files() -> dict[str, str]:
    """The file that each program of the package is in."""
    return {program(path.name): path.name for path in SOURCES.glob("*.cu")}


def kernels_in(text: str) -> set[str]:
    """Names of all ``__global__`` functions in a text."""
    return set(_KERNEL.findall(text))


def parts_of(file: str) -> set[str]:
    """The files that make up a program."""
    found = {file}
    for included in _INCLUDE.findall((SOURCES / file).read_text(encoding="utf-8")):
        found |= parts_of(included)
    return found


def listed() -> list[tuple[str, str]]:
    """File and expression of each line of the list."""
    if not LISTED.exists():
        return []
    lines = LISTED.read_text(encoding="utf-8").splitlines()
    return [(file, name) for file, _, name in (line.partition("\t") for line in lines)]


def _digest(source: str) -> str:
    return hashlib.sha256(source.encode()).hexdigest()[:32]


def _recorded() -> set[tuple[str, str]]:
    """File and expression of all that tests used of the programs as they are now."""
    digests = {file: _digest(source) for source, file in _files().items()}
    lines = [path.read_text().split("\t") for path in cache_folder("recorded").iterdir()]
    return {(file, name) for digest, file, name in lines if digests.get(file) == digest}


def _chosen() -> list[tuple[str, str]]:
    """One expression for each kernel of each program; what is listed stays where it can."""
    recorded = _recorded()
    chosen = {(file, function_of(name)): name for file, name in sorted(recorded, reverse=True)}
    for file, name in listed():
        key = file, function_of(name)
        gone = file not in _files().values() or key[1] not in kernels_in(program(file))
        if not gone and ((file, name) in recorded or key not in chosen):
            chosen[key] = name
    return sorted((file, name) for (file, _), name in chosen.items())


if __name__ == "__main__":
    lines = [f"{file}\t{name}\n" for file, name in _chosen()]
    LISTED.write_text("".join(lines), encoding="utf-8")
    print(f"{len(lines)} expressions in {LISTED}")
