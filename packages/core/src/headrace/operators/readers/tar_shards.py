"""Samples in tar archives: their components, from an index file or from the archive itself."""

from __future__ import annotations

import os
import tarfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any, NamedTuple, Self

import numpy as np

from headrace.errors import ArgumentValueError
from headrace.kernels.cpu import tar_headers
from headrace.kernels.cpu.packed_names import PackedNames
from headrace.operators.readers.kept_index import kept_arrays
from headrace.operators.readers.listing import read_lines
from headrace.operators.readers.storage import file_system, is_remote
from headrace.progress import counted

_BLOCK_BYTES = 512
_PACKED = {b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"\xfd7zXZ": "xz", b"\x28\xb5\x2f\xfd": "zstd"}
_FIELDS = {"v1.1": 3, "v1.2": 4}
"""Words of each component in an index file, by its version."""


class ArchiveMember(NamedTuple):
    """A file in an archive that is part of a sample."""

    extension: str
    offset: int
    size: int
    name: str
    """Empty where the index does not tell."""
    is_sparse: bool = False
    """True if the archive leaves out its zeros, so that it cannot be read as one extent."""


class _Header(tarfile.TarInfo):
    """A header of an archive that ends where there are zeros or nothing, and nowhere else.

    `tarfile` takes a header with a wrong check sum for the end, and follows sizes backwards.
    """

    @classmethod
    def fromtarfile(cls, tarfile: Any) -> Self:
        at = tarfile.fileobj.tell()
        try:
            found = super().fromtarfile(tarfile)
        except _EmptyHeader:
            raise
        except _ZeroHeader:
            if tarfile.fileobj.read(_BLOCK_BYTES).strip(b"\0"):
                raise _damaged("zeros are in place of a header", at) from None
            raise
        except _HeaderError as error:
            raise _damaged(str(error), at) from error
        if found.size < 0 or found.offset_data < 0 or tarfile.offset <= at:
            raise _damaged("a size is negative", at)
        return found


_HeaderError, _ZeroHeader, _EmptyHeader = (
    getattr(tarfile, f"{name}HeaderError") for name in ("", "EOF", "Empty")
)


def _damaged(what: str, at: int) -> tarfile.ReadError:
    return tarfile.ReadError(f"{what} at byte {at}")


class Members(NamedTuple):
    """The files in an archive, or what an index lists.

    `places`: int64 ``(files, 2)``: where each begins, and its size. `names`: their names.
    """

    places: np.ndarray
    names: PackedNames


def members_of(path: str) -> Members | None:
    """The files in a local archive, found without the interpreter; `None` if it is not plain."""
    if is_remote(path):
        return None
    name = np.frombuffer(os.fsencode(path.removeprefix("file://")) + b"\0", np.uint8)
    parts, at, used, room = [], 0, 0, 1024
    while True:
        places, begins = np.empty((room, 2), np.int64), np.empty(room, np.int64)
        text = np.empty(32 * room + (1 << 14), np.uint8)
        count, size, state, at = tar_headers.scan_headers(name, at, places, text, begins)
        if state == tar_headers.ODD:
            return None
        parts.append((places[:count], text[:size], begins[:count] + used))
        used += size
        room = min(2 * room, 1 << 20)
        if state == tar_headers.DONE:
            joined = [np.concatenate(part) for part in zip(*parts, strict=True)]
            longest = int(np.diff(joined[2], append=used).max(initial=1)) - 1
            return Members(joined[0], PackedNames(joined[1], joined[2], longest, False))


def all_members(paths: Sequence[str]) -> list[Members | None]:
    """The same of several archives, side by side."""
    odd: list[Members | None] = []

    def find() -> dict[str, np.ndarray] | None:
        with ThreadPoolExecutor(min(len(paths), os.cpu_count() or 1, 8)) as pool:
            found = list(pool.map(members_of, paths))
        plain = [each for each in found if each is not None]
        if len(plain) < len(found):
            odd.extend(found)
            return None
        return {
            **PackedNames.joined([each.names for each in plain]).arrays(),
            "places": np.concatenate([each.places for each in plain]),
            "counts": np.array([len(each.places) for each in plain]),
            "sizes": np.array([len(each.names.text) for each in plain]),
        }

    arrays = kept_arrays("tar", paths, find)
    if arrays is None:
        return odd
    names = PackedNames.of_arrays(arrays)
    parts: list[Members | None] = []
    at, start = 0, 0
    for count, size in zip(arrays["counts"].tolist(), arrays["sizes"].tolist(), strict=True):
        own, text = slice(at, at + count), names.text[start : start + size]
        packed = PackedNames(text, names.begins[own] - start, names.longest, names.remote)
        parts.append(Members(arrays["places"][own], packed))
        at, start = at + count, start + size
    return parts


def samples_of(path: str) -> Iterator[list[ArchiveMember]]:
    """The samples of an archive: files in a row that have all before the first dot in common."""
    with ExitStack() as stack:
        start = b""
        try:
            if is_remote(path):
                system, inside = file_system(path)
                file = stack.enter_context(system.open(inside, "rb"))
            else:
                file = stack.enter_context(open(path.removeprefix("file://"), "rb"))
            start = file.read(6)
            file.seek(0)
            with tarfile.open(fileobj=file, mode="r:", tarinfo=_Header) as archive:
                yield from counted(_grouped(archive), f"indexing {path}", "samples")
        except (OSError, tarfile.TarError, ValueError, RecursionError) as error:
            if isinstance(error, ArgumentValueError):
                raise
            packed = next((name for magic, name in _PACKED.items() if start.startswith(magic)), "")
            why = f"it is compressed by {packed}, and must not be: {error}" if packed else error
            raise ArgumentValueError(
                f"The archive {path!r} in `paths` cannot be read: {why}."
            ) from error


def _grouped(archive: tarfile.TarFile) -> Iterator[list[ArchiveMember]]:
    last = ""
    found: list[ArchiveMember] = []
    for member in archive:
        folder, slash, file = member.name.rpartition("/")
        stem, _, extension = file.partition(".")
        base = folder + slash + stem
        if not member.isfile() or not base:
            continue
        if base != last and found:
            yield found
            found = []
        last = base
        place = member.offset_data, member.size
        found.append(ArchiveMember(extension, *place, member.name, member.issparse()))
    if found:
        yield found


def indexed_samples(path: str) -> Iterator[list[ArchiveMember]]:
    """The samples that an index file lists.

    Its first line is the version and the number of samples. Each further one has, for each
    component of a sample, the extension, place and size in bytes and, from version 1.2 on, the
    name.
    """
    lines = read_lines("index_paths", path)

    def wrong(number: int, what: str) -> ArgumentValueError:
        return ArgumentValueError(f"Malformed index file {path!r}, line {number}: {what}.")

    head = lines[0].split()
    known = " and ".join(_FIELDS)
    if not head:
        raise wrong(1, f"no version signature found; {known} are known")
    if head[0] not in _FIELDS:
        raise wrong(1, f"Unsupported version of the index file ({head[0]}). {known} are known")
    if len(head) != 2:
        raise wrong(1, "no sample count found after the version, or more than that")
    if not _is_number(head[1]) or not int(head[1]):
        raise wrong(1, f"sample count must be positive, got {head[1]}")
    step = _FIELDS[head[0]]
    for number in range(1, int(head[1]) + 1):
        words = lines[number].split() if number < len(lines) else []
        if not words:
            raise wrong(number + 1, "no extensions provided for the sample")
        sample = []
        for k in range(0, len(words), step):
            parts = words[k : k + step]
            if len(parts) < step or not all(map(_is_number, parts[1:3])):
                raise wrong(
                    number + 1,
                    "Could not find all necessary component parameters: extension, place, size "
                    "and, from v1.2 on, name",
                )
            if int(parts[1]) % _BLOCK_BYTES:
                raise wrong(
                    number + 1,
                    "tar offset is not a multiple of tar block size: "
                    f"{parts[1]} is none of {_BLOCK_BYTES}",
                )
            sample.append(ArchiveMember(parts[0], int(parts[1]), int(parts[2]), "".join(parts[3:])))
        yield sample


def _is_number(word: str) -> bool:
    return word.isdecimal() and len(word) < 19
