"""What processes have and use, as the operating system tells it (Linux)."""

from __future__ import annotations

import os
from pathlib import Path

_PAGE = os.sysconf("SC_PAGE_SIZE")


def resident_bytes() -> int:
    """Resident memory of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE


def own_bytes(pid: int) -> int:
    """Memory of a process but pages of files, what it shares with others divided among them; 0 if
    it is gone.

    Pages of files, such as libraries, count for less the more programs of the machine have them.
    """
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    own = ("Pss_Anon:", "Pss_Shmem:")
    return sum(int(line.split()[1]) << 10 for line in lines if line.startswith(own))


def descendants(pid: int) -> list[int]:
    """Processes that a process has started, and those that these have; none that has ended."""
    parents: dict[int, list[int]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            state, parent = (folder / "stat").read_text().rpartition(")")[2].split()[:2]
        except OSError:
            continue
        if state != "X":
            parents.setdefault(int(parent), []).append(int(folder.name))
    found: list[int] = []
    new = [pid]
    while new:
        new = [child for parent in new for child in parents.get(parent, [])]
        found += new
    return found


def with_variable(setting: str) -> list[int]:
    """Processes that were started with a variable of the environment, as ``NAME=value``."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if setting.encode() in (folder / "environ").read_bytes().split(b"\0"):
                found.append(int(folder.name))
        except OSError:
            continue
    return found


def threads() -> int:
    """How many threads this process has, Python's and others."""
    return len(os.listdir("/proc/self/task"))


def open_files() -> dict[str, int]:
    """What the file descriptors of this process refer to, and how many of each; pipes and sockets
    are counted together.
    """
    found: dict[str, int] = {}
    for number in os.listdir("/proc/self/fd"):
        try:
            name = os.readlink(f"/proc/self/fd/{number}")
        except OSError:  # the one that lists them
            continue
        name = name.partition(":[")[0]
        found[name] = found.get(name, 0) + 1
    return found


def shared_mappings() -> int:
    """How many ranges of memory this process has mapped from memory that has no file on a disk."""
    lines = Path("/proc/self/maps").read_text().splitlines()
    return sum("/memfd:" in line or "/dev/shm/" in line for line in lines)
