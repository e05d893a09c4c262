"""The processor's time that a process and all processes below it have taken, on Linux."""

from __future__ import annotations

import os
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")
_PARENT, _TIMES = 1, slice(11, 15)
"""Places of fields in ``/proc/PID/stat``, counted behind the name of the program."""


def seconds_of_all() -> float:
    """Seconds of this process, of its children, and so on; also of those that have ended."""
    fields = {int(path.name): _fields(path) for path in Path("/proc").iterdir() if _is_one(path)}
    below = {os.getpid()}
    count = 0
    while count < len(below):
        count = len(below)
        below |= {pid for pid, f in fields.items() if f and int(f[_PARENT]) in below}
    return sum(sum(map(int, fields[pid][_TIMES])) for pid in below) / _TICKS


def _is_one(path: Path) -> bool:
    return path.name.isdecimal()


def _fields(path: Path) -> list[str]:
    try:
        return (path / "stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):  # it has just ended
        return []
