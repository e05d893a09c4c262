"""Files and extents within files, from local disks and from anything fsspec knows."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from headrace.errors import BadSampleError
from headrace.operators.readers.remote import fetch
from headrace.operators.readers.remote import file_system as file_system

_LARGEST_READ = 1 << 30  # Linux reads at most 2 GiB - 4 KiB at once

Allocate = Callable[[tuple[int, ...], Any], np.ndarray]


def is_remote(path: str) -> bool:
    """True if `path` is an address such as ``s3://bucket/key``."""
    return "://" in path and not path.startswith("file://")


def join(root: str, name: str) -> str:
    """`name` below `root`, unless it is complete by itself."""
    if not root or name.startswith("/") or "://" in name:
        return name
    return root + name if root.endswith("/") else f"{root}/{name}"


def complete(path: str) -> str:
    """`path`, of a local file from the root on."""
    return path if "://" in path else os.path.abspath(path)


def read_file(path: str, allocate: Allocate, offset: int = 0, size: int = -1) -> np.ndarray:
    """Content of the file at `path`, or of an extent of it.

    `offset`, `size`: where the extent begins and how long it is, in bytes; to the end of the file
    if `size` is negative. Returns 1-D array of uint8.
    """
    if "://" in path:
        if is_remote(path):
            return _read_remote(path, allocate, offset, size)
        path = path.removeprefix("file://")
    try:
        with open(path, "rb", buffering=0) as file:
            end = file.seek(0, os.SEEK_END)
            if end > 1 << 62:  # a directory, on some file systems
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
            wanted = end - offset if size < 0 else size
            if offset + wanted > end or wanted < 0:
                raise BadSampleError(
                    f"The file {path!r} ends at byte {end}, before the end of the extent of "
                    f"{max(wanted, 0)} bytes at {offset}."
                )
            data = allocate((wanted,), np.uint8)
            file.seek(offset)
            done = 0
            while done < wanted:
                rest: Any = data[done : done + _LARGEST_READ]  # a buffer, from Python 3.12 on
                count = file.readinto(rest)
                if not count:
                    raise BadSampleError(
                        f"The file {path!r} was cut while it was read: {done} of {wanted} bytes "
                        "were left."
                    )
                done += count
    except OSError as error:
        raise BadSampleError(_why_not(path, error)) from error
    except ValueError as error:  # a NUL character in the path
        raise BadSampleError(f"The file {path!r} cannot be read: {error}.") from error
    return data


def file_size(path: str) -> int:
    """Bytes of the file at `path`, a local path or an address."""
    if is_remote(path):
        system, inside = file_system(path)
        try:
            return int(system.size(inside))
        except Exception as error:  # each kind of file system raises its own
            raise BadSampleError(f"{path!r} cannot be read: {error!r}.") from error
    path = path.removeprefix("file://")
    try:
        with open(path, "rb", buffering=0) as file:
            return file.seek(0, os.SEEK_END)
    except OSError as error:
        raise BadSampleError(_why_not(path, error)) from error
    except ValueError as error:  # a NUL character in the path
        raise BadSampleError(f"The file {path!r} cannot be read: {error}.") from error


def in_memory(contents: Sequence[Any], empty: Allocate) -> list[Any]:
    """Contents of remote files as 1-D arrays of uint8 in memory of `empty`; `None` for others."""
    there = [content for content in contents if isinstance(content, bytes)]
    memory = empty((sum(map(len, there)),), np.uint8)
    rows: list[Any] = [None] * len(contents)
    at = 0
    for k, content in enumerate(contents):
        if isinstance(content, bytes):
            rows[k] = memory[at : at + len(content)]
            rows[k][:] = np.frombuffer(content, np.uint8)
            at += len(content)
    return rows


def _why_not(path: str, error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        if os.path.islink(path):
            return f"The file {path!r} is a symbolic link to something that does not exist."
        return f"The file {path!r} does not exist."
    if isinstance(error, IsADirectoryError):
        return f"{path!r} is a directory, not a file."
    if isinstance(error, PermissionError):
        return f"The file {path!r} may not be read: permission denied."
    return f"The file {path!r} cannot be read: {error.strerror or error}."


def _read_remote(address: str, allocate: Allocate, offset: int, size: int) -> np.ndarray:
    (content,) = fetch([(address, offset, size)])
    if isinstance(content, Exception):
        raise BadSampleError(f"{address!r} cannot be read: {content!r}.") from content
    if size not in (len(content), -1):
        raise BadSampleError(
            f"{address!r} has {len(content)} of the {size} bytes that begin at {offset}."
        )
    return in_memory([content], allocate)[0]  # type: ignore[no-any-return]
