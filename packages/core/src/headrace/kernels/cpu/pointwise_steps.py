"""Functions of single elements and of single pixels, by instructions: see
`headrace.kernels.cpu.step_loops`.

Words: columns of the address and of the first extent of the samples, which are contiguous, and
their axes; columns of the output's address and of its first extent; and the first column of the
numbers of a sample, if there are any.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np

from headrace.kernels.cpu.color_loops import _transform
from headrace.kernels.cpu.locked_cache import locked_cache
from headrace.kernels.cpu.normalize_pixels import LIMITS
from headrace.kernels.cpu.pointers import pointer
from headrace.kernels.cpu.saturate import saturate
from headrace.kernels.cpu.step_loops import columns_at, real_columns_at, volume, words_at

Carry = Callable[[int, int, int, int], int]
_COLORS = 15
_BY_FLOAT32 = tuple(map(np.dtype, (np.uint8, np.int8, np.uint16, np.int16, np.float32)))
"""Types whose numbers float32 holds."""


@locked_cache
def scaling(source: np.dtype, out: np.dtype) -> Carry:
    """The function that multiplies with a number and adds one, for elements of these types."""
    given: Any = source.type
    wanted: Any = out.type

    def carry(words_address: int, table: int, count: int, k: int) -> int:
        words, columns = words_at(words_address), columns_at(table, count)
        numbers = real_columns_at(table, count)
        size = volume(columns, words[1], words[2], k)
        elements = numba.carray(pointer(np.uint64(columns[words[0], k])), size, given)
        results = numba.carray(pointer(np.uint64(columns[words[3], k])), size, wanted)
        factor, added = np.float32(numbers[words[5], k]), np.float32(numbers[words[5] + 1, k])
        for i in range(size):
            results[i] = saturate(np.float32(elements[i]) * factor + added, results)
        return 0

    return carry


def casts(source: np.dtype, out: np.dtype) -> bool:
    """Return True if `casting` knows these types."""
    is_near = out in _BY_FLOAT32 or out == np.int32
    return _is_direct(source, out) or (source in _BY_FLOAT32 and is_near)


def _is_direct(source: np.dtype, out: np.dtype) -> bool:
    """Return True if no number has to be rounded to an integer, or saturates."""
    if np.float16 in (source, out):
        return False
    return np.can_cast(source, out) or (source.kind in "iub" and out.kind == "f")


@locked_cache
def casting(source: np.dtype, out: np.dtype) -> Carry:
    """The function that converts elements, by way of float32 where numbers may not fit."""
    given: Any = source.type
    wanted: Any = out.type
    if _is_direct(source, out):

        def convert(words_address: int, table: int, count: int, k: int) -> int:
            words, columns = words_at(words_address), columns_at(table, count)
            size = volume(columns, words[1], words[2], k)
            elements = numba.carray(pointer(np.uint64(columns[words[0], k])), size, given)
            results = numba.carray(pointer(np.uint64(columns[words[3], k])), size, wanted)
            for i in range(size):
                results[i] = wanted(elements[i])
            return 0

        return convert

    def carry(words_address: int, table: int, count: int, k: int) -> int:
        words, columns = words_at(words_address), columns_at(table, count)
        size = volume(columns, words[1], words[2], k)
        elements = numba.carray(pointer(np.uint64(columns[words[0], k])), size, given)
        results = numba.carray(pointer(np.uint64(columns[words[3], k])), size, wanted)
        for i in range(size):
            results[i] = saturate(np.float32(elements[i]), results)
        return 0

    return carry


@locked_cache
def coloring(source: np.dtype, out: np.dtype) -> Carry:
    """The function that multiplies the colours of pixels with a matrix and adds an offset."""
    low, high = map(np.float32, LIMITS.get(out, (0.0, 0.0)))
    given: Any = source.type
    wanted: Any = out.type

    def carry(words_address: int, table: int, count: int, k: int) -> int:
        words, columns = words_at(words_address), columns_at(table, count)
        given_numbers = real_columns_at(table, count)
        numbers = np.empty(_COLORS, np.float32)
        for i in range(_COLORS):
            numbers[i] = given_numbers[words[5] + i, k]
        pixels = volume(columns, words[1], words[2] - 1, k)
        if pixels == 0:
            return 0
        shape = (1, pixels, 3)
        colors = numba.carray(pointer(np.uint64(columns[words[0], k])), shape, given)
        results = numba.carray(pointer(np.uint64(columns[words[3], k])), shape, wanted)
        _transform(colors, numbers, False, False, low, high, results)
        return 0

    return carry
