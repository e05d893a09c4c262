"""Damaged copies of files, and what becomes of a program that reads them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headrace.errors import HeadraceError

FILES = pytest.mark.parametrize("count", [100, pytest.param(3000, marks=pytest.mark.nightly)])
"""How many damaged files a test reads; nightly runs take the 3,000 as well."""

_NUMBER = re.compile(rb"-?\d+")
_NUMBERS = (0, 1, -1, 2**15, 2**31 - 1, 2**31, 2**32, -(2**31), 2**63 - 1, 2**63, -(2**63), 10**30)
_BYTES = (0x00, 0x01, 0x7F, 0x80, 0xFF)


def mutants(content: bytes, count: int, *, seed: int = 0, hot: int = 512) -> Iterator[bytes]:
    """Damaged copies of `content`, none equal to it; half of them within the first `hot` bytes.

    Bits are turned, bytes and binary numbers overwritten, with extremes too, numbers in text
    replaced, parts cut, doubled, exchanged, put in, and the end left out; often several at once.
    """
    rng = np.random.default_rng(seed)
    made = 0
    while made < count:
        data = bytearray(content)
        for _ in range(1 + int(rng.geometric(0.6)) // 2):
            reach = len(data) if rng.random() < 0.5 else min(hot, len(data))
            _damage(data, rng, reach)
        if data != content:
            made += 1
            yield bytes(data)


def _damage(data: bytearray, rng: np.random.Generator, reach: int) -> None:
    if not reach:
        data += rng.bytes(4)
        return
    at = int(rng.integers(reach))
    length = int(rng.integers(1, 1 + min(64, len(data) - at)))
    match rng.integers(9):
        case 0:
            data[at] ^= 1 << int(rng.integers(8))
        case 1:
            data[at] = int(rng.integers(256))
        case 2:
            width = int(rng.choice([1, 2, 4, 8]))
            data[at : at + width] = bytes([int(rng.choice(_BYTES))]) * min(width, len(data) - at)
        case 3:
            numbers = list(_NUMBER.finditer(data, 0, reach))
            if numbers:
                begin, end = numbers[int(rng.integers(len(numbers)))].span()
                data[begin:end] = b"%d" % _NUMBERS[int(rng.integers(len(_NUMBERS)))]
        case 4:
            del data[at : at + length]
        case 5:
            data[at:at] = data[at : at + length]
        case 6:
            other = int(rng.integers(len(data)))
            data[at : at + length], data[other : other + length] = (
                data[other : other + length],
                data[at : at + length],
            )
        case 7:
            data[at:at] = rng.bytes(length)
        case _:
            del data[at:]


def outcomes(
    path: Path, content: bytes, count: int, read: Callable[[], Any], **how: Any
) -> Iterator[tuple[bytes, Any]]:
    """What `read` makes of each damaged copy of `content` at `path`: a value, or an error of ours.

    `how` goes to `mutants`. Any other exception, and an error that does not name the file, fails
    the test, which then says where the damaged file is.
    """
    for number, mutant in enumerate(mutants(content, count, **how)):
        path.write_bytes(mutant)
        try:
            found = read()
        except HeadraceError as error:
            if path.name not in str(error):
                kept = path.with_name(f"kept{number}{path.suffix}")
                kept.write_bytes(mutant)
                raise AssertionError(f"The error of {kept} does not name its file") from error
            found = error
        except BaseException as error:
            error.add_note(f"Read was damaged file number {number}, {path}.")
            raise
        yield mutant, found
