"""Extents of the values in the file of an LMDB data base.

The file is pages: two with what the data base is, of which the one with the later transaction is in
force, and a tree. A leaf of the tree lists keys in their order, each with its value, or with the
first of the pages that a large value fills. So every value is one extent of the file.
"""

from __future__ import annotations

import operator
import struct
from typing import NamedTuple

import numpy as np

_MAGIC = 0xBEEFC0DE
_HEADER = struct.Struct("<QHHHH")
"""Of a page: its number, padding, its kind, and where free space begins and ends, or how many pages
a large value fills.
"""
_META = struct.Struct("<IIQQ")
_TREE = struct.Struct("<IHHQQQQQ")
"""Size of a page or 0, flags, depth; numbers of pages by kind; of entries; the root."""
_END = struct.Struct("<QQ")
"""The last page, and the transaction."""
_BRANCH, _LEAF, _LARGE, _OF_META = 1, 2, 4, 8
_KINDS = 0x6F
_PAGE_BYTES = [1 << k for k in range(8, 17)]
_ELSEWHERE = 1
"""The flag of a value that fills pages of its own."""
_NONE = 2**64 - 1
_DAMAGED = "a page is damaged"


class ValueExtents(NamedTuple):
    """The entries of a data base, in the order of their keys."""

    keys: list[bytes]
    offsets: np.ndarray
    sizes: np.ndarray


def read_extents(path: str) -> ValueExtents:
    """Find the entries of the data base in a file."""
    data = np.memmap(path, np.uint8, "r")
    page_bytes, by_bytes, count, root = _newest(data)
    keys: list[bytes] = []
    offsets: list[np.ndarray] = []
    sizes: list[np.ndarray] = []
    left, pages = [] if root == _NONE else [root], 0
    while left:
        number = left.pop()
        start = number * page_bytes
        pages += 1
        if start + page_bytes > len(data) or pages > len(data) // page_bytes:
            raise ValueError("a page is missing")
        page = np.asarray(data[start : start + page_bytes])
        said, _, kind, lower, _ = _HEADER.unpack(page[: _HEADER.size].tobytes())
        if said != number or not _HEADER.size <= lower <= page_bytes or lower % 2:
            raise ValueError(_DAMAGED)
        nodes = page[_HEADER.size : lower].view("<u2").astype(np.int64)
        if nodes.size and (nodes.min() < lower or nodes.max() + 8 > page_bytes):
            raise ValueError(_DAMAGED)
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
            raise ValueError(_DAMAGED)
        text = page.tobytes()
        spans = zip((nodes + 8).tolist(), begins.tolist(), strict=True)
        keys += [text[begin:end] for begin, end in spans]
        places = start + begins
        away = np.flatnonzero(flags)
        numbers = page[begins[away, np.newaxis] + np.arange(8)].view("<u8").reshape(-1)
        _check_large(data, page_bytes, numbers, value_bytes[away])
        places[away] = numbers.astype(np.int64) * page_bytes + _HEADER.size
        offsets.append(places)
        sizes.append(value_bytes)
    if len(keys) != count:
        raise ValueError(f"it has {len(keys)} entries where it announces {count}")
    if by_bytes and any(map(operator.ge, keys, keys[1:])):
        raise ValueError("its keys are not in order")
    nothing = [np.zeros(0, np.int64)]
    return ValueExtents(keys, np.concatenate(offsets or nothing), np.concatenate(sizes or nothing))


def _check_large(
    data: np.ndarray, page_bytes: int, numbers: np.ndarray, value_bytes: np.ndarray
) -> None:
    """Check that values of these lengths fill the pages from these numbers on."""
    pages = -(-(_HEADER.size + value_bytes) // page_bytes)
    if not numbers.size:
        return
    if (
        numbers.max() >= len(data) // page_bytes
        or (numbers.astype(np.int64) + pages > len(data) // page_bytes).any()
    ):
        raise ValueError("a page is missing")
    starts = numbers.astype(np.int64) * page_bytes
    heads = data[starts[:, np.newaxis] + np.arange(_HEADER.size)]
    said, kinds = heads[:, :8].copy().view("<u8")[:, 0], heads[:, 10:12].copy().view("<u2")[:, 0]
    many = heads[:, 12:16].copy().view("<u4")[:, 0]
    if (said != numbers).any() or (kinds & _KINDS != _LARGE).any() or (many < pages).any():
        raise ValueError(_DAMAGED)


def _newest(data: np.ndarray) -> tuple[int, bool, int, int]:
    """Of the transaction that was the last: bytes of a page, whether keys are in the order of their
    bytes, number of entries and root.
    """
    first = _meta(data, 0, 0)
    second = _meta(data, first[1], 1)
    return max(first, second)[1:]


def _meta(data: np.ndarray, start: int, page: int) -> tuple[int, int, bool, int, int]:
    begin = start + _HEADER.size
    free = begin + _META.size
    main = free + _TREE.size
    end = main + _TREE.size
    if end + _END.size > len(data):
        raise ValueError("it is too short")
    said, _, kind, _, _ = _HEADER.unpack(data[start:begin].tobytes())
    magic, version, _, _ = _META.unpack(data[begin:free].tobytes())
    page_bytes = _TREE.unpack(data[free:main].tobytes())[0]
    if magic != _MAGIC or version != 1:
        raise ValueError("it does not begin as a data base of LMDB's version 1 does")
    if said != page or not kind & _OF_META or page_bytes not in _PAGE_BYTES:
        raise ValueError(_DAMAGED)
    _, flags, _, *_, count, root = _TREE.unpack(data[main:end].tobytes())
    _, transaction = _END.unpack(data[end : end + _END.size].tobytes())
    return transaction, page_bytes, not flags, count, root
