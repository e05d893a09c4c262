"""Findings of readers in large local files, kept in the cache folder as arrays that are mapped.

Ranks of a host, and later runs, share them; a file that has changed is looked through again.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from headrace._version import __version__
from headrace.config import cache_folder
from headrace.operators.readers.storage import is_remote

KIND = "indexes"
"""Name of the folder."""
LIMIT_BYTES = 8 << 30
"""Of all that is kept; what was used last stays."""
SMALLEST_BYTES = 16 << 20
"""Files of less are looked through each time."""
_MAGIC = b"headrace index 1\n"
_ALIGNMENT = 64
_YOUNG_SECONDS = 0.05
"""Files that changed so shortly before may change once more and look the same."""

Arrays = dict[str, np.ndarray]


def kept_arrays(
    kind: str, paths: Sequence[str], find: Callable[[], Mapping[str, np.ndarray] | None]
) -> Mapping[str, np.ndarray] | None:
    """Call `find`, or return what it has found when the files were the same.

    `kind`: what is looked for, with all that it depends on but the files. `paths`: the files.
    `find`: returns arrays, or `None`, which is not kept.
    """
    file = _place(kind, paths)
    if file is None:
        return find()
    found = _read(file)
    if found is not None:
        with contextlib.suppress(OSError):
            os.utime(file)  # it was used
        return found
    made = find()
    if made is None or not _write(file, made):
        return made
    return _read(file) or made


def kept_files() -> list[Path]:
    """The files of kept indexes, the one that was used last at the end."""
    folder = cache_folder(KIND)
    if folder is None:
        return []
    times = {}
    with contextlib.suppress(OSError):
        for entry in os.scandir(folder):
            times[Path(entry.path)] = entry.stat().st_mtime
    return sorted(times, key=times.__getitem__)


def _place(kind: str, paths: Sequence[str]) -> Path | None:
    """The file for what is found; `None` where it is not worth it, or not possible."""
    folder = cache_folder(KIND)
    if folder is None or any(is_remote(path) for path in paths):
        return None
    key = hashlib.blake2b(f"{__version__} {kind}".encode(), digest_size=20)
    total, newest = 0, 0
    try:
        for path in paths:
            name = os.path.abspath(path.removeprefix("file://"))
            facts = os.stat(name)
            total += facts.st_size
            newest = max(newest, facts.st_mtime_ns, facts.st_ctime_ns)
            stamp = facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns, facts.st_ino
            key.update(os.fsencode(f"\0{name}\0{stamp}"))
    except (OSError, ValueError):
        return None  # whoever reads it says why
    if total < SMALLEST_BYTES or newest > time.time_ns() - int(_YOUNG_SECONDS * 1e9):
        return None
    return folder / key.hexdigest()


def _write(file: Path, arrays: Mapping[str, np.ndarray]) -> bool:
    """Keep arrays, if there is room; a reader finds all of the file or none."""
    at = 0
    table: list[tuple[str, str, list[int], int]] = []
    for name, array in arrays.items():
        at = -(-at // _ALIGNMENT) * _ALIGNMENT
        table.append((name, array.dtype.str, list(array.shape), at))
        at += array.nbytes
    head = json.dumps(table).encode()
    start = -(-(len(_MAGIC) + 24 + len(head)) // _ALIGNMENT) * _ALIGNMENT
    first = _MAGIC + b"%11d %11d\n" % (len(head), start + at) + head
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        space = os.statvfs(file.parent)
        if at > LIMIT_BYTES or 10 * at > space.f_bavail * space.f_frsize:
            return False
        _make_room(at)
        with tempfile.NamedTemporaryFile(dir=file.parent, prefix=".", delete=False) as beside:
            try:
                beside.write(first)
                for (_, _, _, begin), array in zip(table, arrays.values(), strict=True):
                    beside.seek(start + begin)
                    beside.write(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
                beside.truncate(start + at)
                beside.flush()
                os.fsync(beside.fileno())
                os.replace(beside.name, file)
            except BaseException:
                os.unlink(beside.name)
                raise
    except OSError:  # full, or not to be written to: it is found again the next time
        return False
    return True


def _make_room(size: int) -> None:
    files = kept_files()
    sizes = {}
    for file in files:
        with contextlib.suppress(OSError):
            sizes[file] = file.stat().st_size
    left = sum(sizes.values()) + size
    for file, bytes_of_file in sizes.items():
        if left <= LIMIT_BYTES:
            return
        with contextlib.suppress(OSError):
            file.unlink()
            left -= bytes_of_file


def _read(file: Path) -> Arrays | None:
    """Kept arrays, mapped; `None` if there are none, or they are damaged."""
    try:
        whole = np.memmap(file, np.uint8, "r")
        head = whole[: len(_MAGIC) + 24].tobytes()
        if not head.startswith(_MAGIC):
            return None
        length, size = map(int, head[len(_MAGIC) :].split())
        if size != len(whole):
            return None
        table = json.loads(whole[len(head) : len(head) + length].tobytes())
        start = -(-(len(head) + length) // _ALIGNMENT) * _ALIGNMENT
        found = {}
        for name, dtype, shape, begin in table:
            kind = np.dtype(dtype)
            size = int(np.prod(shape, dtype=np.int64)) * kind.itemsize
            part = np.asarray(whole)[start + begin : start + begin + size]
            found[name] = part.view(kind).reshape(shape)
        return found
    except (OSError, ValueError, TypeError, KeyError):
        return None
