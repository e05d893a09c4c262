"""Where the values of an LMDB data base lie in its file.

The file is pages: two with what the data base is, of which the one with the later transaction is in
force, and a tree. A leaf of the tree lists keys in their order, each with its value, or with the
first of the pages that a large value fills. So every value is one extent of the file.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

import numpy as np

_MAGIC = 0xBEEFC0DE
_HEADER = struct.Struct("<QHHHH")
"""Of a page: its number, padding, its kind, and where free space begins and ends."""
_META = struct.Struct("<IIQQ")
_TREE = struct.Struct("<IHHQQQQQ")
"""Size of a page or 0, flags, depth; numbers of pages by kind; of entries; the root."""
_END = struct.Struct("<QQ")
"""The last page, and the transaction."""
_BRANCH, _LEAF = 1, 2
_KINDS = 0x7F
_ELSEWHERE = 1
"""The flag of a value that fills pages of its own."""
_NONE = 2**64 - 1


class Extents(NamedTuple):
    """The entries of a data base, in the order of their keys."""

    keys: list[bytes]
    offsets: np.ndarray
    sizes: np.ndarray


def read_extents(path: str) -> Extents:
    """Find the entries of the data base in a file.

    Raises
    ------
    OSError
        If the file cannot be read.
    ValueError
        If it is no data base, or is damaged, or has trees within the tree.
    """
    data = np.memmap(path, np.uint8, "r")
    page_bytes, count, root = _newest(data)
    keys: list[bytes] = []
    offsets: list[np.ndarray] = []
    sizes: list[np.ndarray] = []
    left, pages = [] if root == _NONE else [root], 0
    while left:
        start = left.pop() * page_bytes
        pages += 1
        if start + page_bytes > len(data) or pages > len(data) // page_bytes:
            raise ValueError("a page is missing")
        page = np.asarray(data[start : start + page_bytes])
        _, _, kind, lower, _ = _HEADER.unpack(page[: _HEADER.size].tobytes())
        if not _HEADER.size <= lower <= page_bytes:
            raise ValueError("a page is damaged")
        nodes = page[_HEADER.size : lower].view("<u2").astype(np.int64)
        if nodes.size and nodes.max() + 8 > page_bytes:
            raise ValueError("a page is damaged")
        low, high, flags, key_bytes = (
            page[nodes[:, np.newaxis] + np.arange(8)].view("<u2").astype(np.int64).T
        )
        if kind & _KINDS == _BRANCH:
            left += (low | high << 16 | flags << 32).tolist()[::-1]
            continue
        if kind & _KINDS != _LEAF or (flags & ~_ELSEWHERE).any():
            raise ValueError("it has several values for a key, or data bases within it")
        begins, value_bytes = nodes + 8 + key_bytes, low | high << 16
        if (begins + np.where(flags, 8, value_bytes) > page_bytes).any():
            raise ValueError("a page is damaged")
        text = page.tobytes()
        spans = zip((nodes + 8).tolist(), begins.tolist(), strict=True)
        keys += [text[begin:end] for begin, end in spans]
        places = start + begins
        away = np.flatnonzero(flags)
        numbers = page[begins[away, np.newaxis] + np.arange(8)].view("<i8").reshape(-1)
        places[away] = numbers * page_bytes + _HEADER.size
        offsets.append(places)
        sizes.append(value_bytes)
    if len(keys) != count:
        raise ValueError(f"it has {len(keys)} entries where it announces {count}")
    nothing = [np.zeros(0, np.int64)]
    return Extents(keys, np.concatenate(offsets or nothing), np.concatenate(sizes or nothing))


def _newest(data: np.ndarray) -> tuple[int, int, int]:
    """Bytes of a page, number of entries and root, by the transaction that was the last."""
    first = _meta(data, 0)
    second = _meta(data, first[1])
    return max(first, second)[1:]


def _meta(data: np.ndarray, start: int) -> tuple[int, int, int, int]:
    start += _HEADER.size
    free = start + _META.size
    main = free + _TREE.size
    end = main + _TREE.size
    if end + _END.size > len(data):
        raise ValueError("it is too short")
    magic, version, _, _ = _META.unpack(data[start:free].tobytes())
    if magic != _MAGIC or version != 1:
        raise ValueError("it does not begin as a data base of LMDB's version 1 does")
    page_bytes = _TREE.unpack(data[free:main].tobytes())[0]
    count, root = _TREE.unpack(data[main:end].tobytes())[-2:]
    _, transaction = _END.unpack(data[end : end + _END.size].tobytes())
    return transaction, page_bytes, count, root
