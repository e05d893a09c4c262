"""Pixels normalised by instructions: see `headrace.kernels.cpu.step_loops`.

Words: those of a view of the images, HWC (`SampleColumns.view_words`); columns of the output's
address and of its first extent; True if the output is CHW; and for each number of channels from 1
to `MOST_CHANNELS`, the addresses of sixteen pixels' worth of means and of factors, 0 where images
with so many channels are refused, each with the length.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numpy.lib.stride_tricks import as_strided

from headrace.kernels.cpu.locked_cache import locked_cache
from headrace.kernels.cpu.normalize_pixels import LIMITS, STORED_AS, _normalize
from headrace.kernels.cpu.pointers import pointer
from headrace.kernels.cpu.step_loops import columns_at, floats, view_strides, words_at

MOST_CHANNELS = 4
_ADDRESS, _EXTENTS, _OUT, _SHAPE, _PLANAR, _TABLES = 0, 1, 5, 6, 7, 8
_TABLE_PARTS = 4


def plan(words_address: int, table: int, count: int, _: int) -> int:
    """Find the extents of outputs; images whose channels do not fit are refused."""
    words, columns = words_at(words_address), columns_at(table, count)
    for k in range(count):
        height, width, channels = columns[words[_EXTENTS] : words[_EXTENTS] + 3, k]
        if (
            not 1 <= channels <= MOST_CHANNELS
            or words[_TABLES + _TABLE_PARTS * (channels - 1)] == 0
        ):
            return 1
        shape = columns[words[_SHAPE] : words[_SHAPE] + 3, k]
        if words[_PLANAR] != 0:
            shape[0], shape[1], shape[2] = channels, height, width
        else:
            shape[0], shape[1], shape[2] = height, width, channels
    return 0


@locked_cache
def normalizing(source: np.dtype, out: np.dtype) -> Callable[[int, int, int, int], int]:
    """The function that normalises images of elements of type `source` to those of type `out`."""
    limits = LIMITS.get(out)
    rounds, low, high = limits is not None, *map(np.float32, limits or (0.0, 0.0))
    given: Any = source.type
    wanted: Any = STORED_AS.get(out, out).type

    def carry(words_address: int, table: int, count: int, k: int) -> int:
        words, columns = words_at(words_address), columns_at(table, count)
        height, width, channels = columns[words[_EXTENTS] : words[_EXTENTS] + 3, k]
        if height * width == 0:
            return 0
        strides = view_strides(words, columns, k)
        at = _TABLES + _TABLE_PARTS * (channels - 1)
        extents = (height, width, channels)
        pixels = as_strided(
            numba.carray(pointer(np.uint64(columns[words[_ADDRESS], k])), 1, given),
            extents,
            (strides[0], strides[1], strides[2]),
        )
        results = numba.carray(pointer(np.uint64(columns[words[_OUT], k])), 1, wanted)
        size = results.itemsize
        if words[_PLANAR] != 0:
            steps = (width * size, size, height * width * size)
        else:
            steps = (width * channels * size, channels * size, size)
        _normalize(
            pixels,
            floats(words[at], words[at + 1]),
            floats(words[at + 2], words[at + 3]),
            rounds,
            low,
            high,
            as_strided(results, extents, steps),
        )
        return 0

    return carry
