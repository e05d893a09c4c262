"""Whole files, from local disks and from anything fsspec knows."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock._later import later
from penstock.errors import ArgumentValueError, BadSampleError, MissingDependencyError

if TYPE_CHECKING:
    from penstock.kernels.cpu import file_reading
else:
    file_reading = later("penstock.kernels.cpu.file_reading")

_LARGEST_READ = 1 << 30  # Linux reads at most 2 GiB - 4 KiB at once
_OPEN_FLAGS = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_HAS_PREADV = hasattr(os, "preadv")
_NO_MEMORY = np.empty(0, np.uint8)

Allocate = Callable[[tuple[int, ...], Any], np.ndarray]


def is_remote(path: str) -> bool:
    """Whether `path` is an address such as ``s3://bucket/key``."""
    return "://" in path and not path.startswith("file://")


def join(root: str, name: str) -> str:
    """`name` below `root`, unless it is complete by itself."""
    if not root or name.startswith("/") or "://" in name:
        return name
    return root + name if root.endswith("/") else f"{root}/{name}"


def read_file(path: str, allocate: Allocate) -> np.ndarray:
    """Content of the file at `path`.

    Parameters
    ----------
    path
        A local path or an address.
    allocate
        Called as ``allocate(shape, dtype)`` for memory to read into.

    Returns
    -------
    1-D array of uint8.

    Raises
    ------
    BadSampleError
        If the file cannot be read; the message says why.
    """
    if "://" in path:
        if is_remote(path):
            return _read_remote(path, allocate)
        path = path.removeprefix("file://")
    try:
        if _HAS_PREADV:
            return _read_local(path, allocate)
        with open(path, "rb", buffering=0) as file:
            return _read_rest(file.readinto, os.fstat(file.fileno()).st_size, allocate)
    except OSError as error:
        raise BadSampleError(_why_not(path, error)) from error
    except ValueError as error:  # a NUL character in the path
        raise BadSampleError(f"The file {path!r} cannot be read: {error}.") from error


def read_together(
    paths: Sequence[str], empty: Allocate, free: np.ndarray | None = None
) -> list[np.ndarray | None]:
    """Contents of several files, for those that can simply be read.

    Parameters
    ----------
    paths
        Local paths.
    empty
        Called as ``empty(shape, dtype)``, once, for memory that all contents share.
    free
        The memory that `empty` would give, as much as there is of it.

    Returns
    -------
    list
        1-D arrays of uint8. `None` stands for addresses, and for files that `read_file` is to say
        what is wrong with.
    """
    together = "\0".join((*paths, ""))
    if not _HAS_PREADV or "://" in together or together.count("\0") != len(paths):
        return [None] * len(paths)
    unopened = file_reading.UNOPENED
    read_files = file_reading.read_files

    text = np.frombuffer(os.fsencode(together), np.uint8)
    files = np.empty((len(paths), 4), np.int64)
    if len(text) == len(together):
        lengths = [len(path) + 1 for path in paths[:-1]]
    else:
        lengths = [len(os.fsencode(path)) + 1 for path in paths[:-1]]
    files[:, 0] = [0, *accumulate(lengths)]
    files[:, 1] = unopened
    memory = _NO_MEMORY if free is None else free
    needed = read_files(text, files, memory)
    if needed <= memory.size:
        taken = empty((needed,), np.uint8)
    else:
        try:
            taken = empty((needed,), np.uint8)
        except MemoryError:
            for descriptor in files[:, 1].tolist():
                if descriptor >= 0:
                    os.close(descriptor)
            raise
        read_files(text, files, taken)
    return [
        taken[offset : offset + size] if descriptor >= 0 else None
        for _, descriptor, offset, size in files.tolist()
    ]


def _read_local(path: str, allocate: Allocate) -> np.ndarray:
    # Measured against mmap, file objects and np.fromfile: with files of 100 kB in the page cache
    # this takes 9 us, the others 11 to 24 us, and mmap is the only one whose cost grows with two
    # threads, which share one lock on the address space.
    descriptor = os.open(path, _OPEN_FLAGS)
    try:
        size = os.lseek(descriptor, 0, os.SEEK_END)
        if size > 1 << 62:  # a directory, on some file systems
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        data = allocate((size,), np.uint8)
        rest: Any = data[:_LARGEST_READ]  # mypy knows arrays as buffers from Python 3.12 on
        done = os.preadv(descriptor, (rest,), 0)
        while 0 < done < size:
            rest = data[done : done + _LARGEST_READ]
            count = os.preadv(descriptor, (rest,), done)
            if not count:
                break
            done += count
    finally:
        os.close(descriptor)
    if done < size:
        raise BadSampleError(
            f"The file {path!r} was cut while it was read: {done} of {size} bytes were left."
        )
    return data


def _read_rest(readinto: Callable[[Any], int | None], size: int, allocate: Allocate) -> np.ndarray:
    data = allocate((size,), np.uint8)
    done = 0
    while done < size:
        count = readinto(data[done : done + _LARGEST_READ])
        if not count:
            raise BadSampleError(
                f"The file was cut while it was read: {done} of {size} bytes were left."
            )
        done += count
    return data


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


def file_system(address: str) -> tuple[Any, str]:
    """The fsspec file system of `address` and the path within it.

    Raises
    ------
    MissingDependencyError
        If fsspec, or the library it needs for this kind of address, is not installed.
    ArgumentValueError
        If fsspec does not know this kind of address.
    """
    try:
        import fsspec

        found: tuple[Any, str] = fsspec.core.url_to_fs(address)
    except ImportError as error:
        raise MissingDependencyError(
            f"Reading {address!r} needs fsspec and its library for "
            f'"{address.partition("://")[0]}": {error}.'
        ) from error
    except ValueError as error:
        raise ArgumentValueError(
            f"The address {address!r} is of no known kind: {error}."
        ) from error
    return found


def _read_remote(address: str, allocate: Allocate) -> np.ndarray:
    system, path = file_system(address)
    try:
        content = system.cat_file(path)
    except Exception as error:  # each kind of file system raises its own
        raise BadSampleError(f"{address!r} cannot be read: {error!r}.") from error
    data = allocate((len(content),), np.uint8)
    data[:] = np.frombuffer(content, np.uint8)
    return data
