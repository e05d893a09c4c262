"""Files and extents within files, from local disks and from anything fsspec knows."""

from __future__ import annotations

import errno
import hashlib
import os
import struct
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from headrace.errors import ArgumentValueError, BadSampleError, MissingDependencyError

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


def read_addresses(places: Sequence[tuple[str, int, int]], empty: Allocate) -> list[Any]:
    """Contents of extents of several remote files, asked for at once.

    Returns 1-D arrays of uint8; `None` for what is no address, and for what `read_file` is to try
    again or to say what is wrong with.
    """
    groups: dict[int, tuple[Any, list[tuple[int, str]]]] = {}
    for k, (address, _, _) in enumerate(places):
        if is_remote(address):
            system, path = file_system(address)
            groups.setdefault(id(system), (system, []))[1].append((k, path))
    contents: dict[int, bytes] = {}
    for system, paths in groups.values():
        extents = [places[k][1:] for k, _ in paths]
        begins = [offset or None for offset, _ in extents]
        ends = [None if size < 0 else offset + size for offset, size in extents]
        found = system.cat_ranges([p for _, p in paths], begins, ends, on_error="return")
        for (k, _), content, (_, size) in zip(paths, found, extents, strict=True):
            if not isinstance(content, BaseException) and size in (len(content), -1):
                contents[k] = content
    memory = empty((sum(map(len, contents.values())),), np.uint8)
    rows: list[Any] = [None] * len(places)
    at = 0
    for k, content in contents.items():
        rows[k] = memory[at : at + len(content)]
        rows[k][:] = np.frombuffer(content, np.uint8)
        at += len(content)
    return rows


def remote_stamps(addresses: Sequence[str]) -> list[tuple[int, int, int] | None]:
    """Tell versions of remote files apart by three numbers, of what their stores say of them: size,
    time, checksum. `None` for those that nothing is said of.
    """
    found: dict[str, Any] = {}
    groups: dict[int, tuple[Any, dict[str, str]]] = {}
    for address in addresses:
        system, path = file_system(address)
        groups.setdefault(id(system), (system, {}))[1][address] = path
    for system, paths in groups.values():
        found.update(zip(paths, _infos(system, list(paths.values())), strict=True))
    return [_stamp(found[address]) for address in addresses]


def _infos(system: Any, paths: list[str]) -> list[Any]:
    """Facts that a file system knows of files; of an asynchronous one, asked for at once."""
    if not getattr(system, "async_impl", False):
        return [_info(system, path) for path in paths]
    import asyncio

    from fsspec.asyn import sync

    async def ask() -> list[Any]:
        asked = [system._info(path) for path in paths]
        return list(await asyncio.gather(*asked, return_exceptions=True))

    return list(sync(system.loop, ask))


def _info(system: Any, path: str) -> Any:
    try:
        return system.info(path)
    except Exception as error:  # each kind of file system raises its own
        return error


def _stamp(info: Any) -> tuple[int, int, int] | None:
    if isinstance(info, BaseException):
        return None
    said = {k: v for k, v in info.items() if k not in ("name", "Key", "type", "StorageClass")}
    digest = hashlib.blake2b(repr(sorted(said.items())).encode(), digest_size=16).digest()
    return int(info.get("size") or 0), *struct.unpack("<2q", digest)


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
    """The fsspec file system of `address` and the path within it."""
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


def _read_remote(address: str, allocate: Allocate, offset: int, size: int) -> np.ndarray:
    system, path = file_system(address)
    begin, end = offset or None, None if size < 0 else offset + size
    try:
        content = system.cat_file(path, begin, end)
    except Exception as error:  # each kind of file system raises its own
        raise BadSampleError(f"{address!r} cannot be read: {error!r}.") from error
    if size not in (len(content), -1):
        raise BadSampleError(
            f"{address!r} has {len(content)} of the {size} bytes that begin at {offset}."
        )
    data = allocate((len(content),), np.uint8)
    data[:] = np.frombuffer(content, np.uint8)
    return data
