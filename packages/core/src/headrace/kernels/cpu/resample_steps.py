"""Images resampled, and normalised, by instructions: see `headrace.kernels.cpu.step_loops`.

Words: those of the images, uint8, HWC (`SampleColumns.words`); columns of the output's address and
of its first extent; the first column of the axes, `NUMBERS` each; the first columns of the anchors
and of the extents of a window of the resampled image, or -1 twice; columns of the address and of
the bytes of scratch memory; True if filters widen; whether to mirror (see `step_numbers`); a
`Finish`; for each number of channels from 1 to `MOST_CHANNELS` the addresses of means and of
factors, 0 where images with so many are refused, each with the length; and the tables of filters
and their radii, each with the length.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np

from headrace.kernels.compilation import njit
from headrace.kernels.cpu.locked_cache import locked_cache
from headrace.kernels.cpu.normalize_pixels import STORED_AS
from headrace.kernels.cpu.pixel_steps import MOST_CHANNELS
from headrace.kernels.cpu.pointers import pointer
from headrace.kernels.cpu.resample_images import (
    Finish,
    scratch_sizes,
    taps_of_image,
    write_image,
)
from headrace.kernels.cpu.resample_taps import AXIS
from headrace.kernels.cpu.step_loops import columns_at, floats, reals_at, words_at
from headrace.kernels.cpu.step_numbers import PARTS, number_of

NUMBERS = len(AXIS.names or ())
"""Columns of an axis: its fields, as float64."""
_WORDS = AXIS.itemsize // 8
_ADDRESS, _EXTENTS, _OUT, _SHAPE, _AXES, _ANCHORS, _WINDOW = 0, 1, 3, 4, 5, 6, 7
_MEMORY, _BYTES, _ANTIALIAS, _MIRROR = 8, 9, 10, 11
_FINISH = _MIRROR + PARTS
_TABLES = _FINISH + len(Finish._fields)
_TABLE_PARTS = 4
_FILTERS = _TABLES + _TABLE_PARTS * MOST_CHANNELS
_RADII = _FILTERS + 2 * 4
_START, _END = 2, 3
_BEGIN, _LENGTH, _STEP = 4, 5, 6
"""Places of numbers of an axis in memory, eight bytes each; its start and its end share one."""


@njit(nogil=True)
def _axes_of(words: np.ndarray, columns: np.ndarray, k: int) -> np.ndarray:
    """The axes of sample `k`, cut to its window, as the integers of two `AXIS`."""
    found = np.empty(2 * _WORDS, np.int64)
    singles, reals = found.view(np.float32), columns.view(np.float64)
    for axis in range(2):
        at, first = axis * _WORDS, words[_AXES] + axis * NUMBERS
        for i in range(_WORDS):
            found[at + i] = np.int64(reals[first + (i if i < _END else i + 1), k])
        singles[2 * (at + _START)] = np.float32(reals[first + _START, k])
        singles[2 * (at + _START) + 1] = np.float32(reals[first + _END, k])
        if words[_ANCHORS] >= 0:
            found[at + _BEGIN] += found[at + _STEP] * columns[words[_ANCHORS] + axis, k]
            found[at + _LENGTH] = columns[words[_WINDOW] + axis, k]
    return found


@njit(nogil=True)
def _filters_of(words: np.ndarray) -> tuple[Any, Any]:
    """Tables of the filters, and their radii."""
    at = _FILTERS
    tables = (
        floats(words[at], words[at + 1]),
        floats(words[at + 2], words[at + 3]),
        floats(words[at + 4], words[at + 5]),
        floats(words[at + 6], words[at + 7]),
    )
    radii = floats(words[_RADII], words[_RADII + 1])
    return tables, (radii[0], radii[1], radii[2], radii[3])


def plan(words_address: int, table: int, count: int, _: int) -> int:
    """Find the extents of outputs, and how much scratch memory there is to be; images without
    pixels, and those whose channels do not fit, are refused.
    """
    words, reals = words_at(words_address), reals_at(words_address)
    columns = columns_at(table, count)
    radii = _filters_of(words)[1]
    for k in range(count):
        height, width, channels = columns[words[_EXTENTS] : words[_EXTENTS] + 3, k]
        if (
            height * width == 0
            or not 1 <= channels <= MOST_CHANNELS
            or words[_TABLES + _TABLE_PARTS * (channels - 1)] == 0
            or not number_of(words, reals, _MIRROR, columns, k)[0]
        ):
            return 1
        numbers = _axes_of(words, columns, k)
        axes = numba.carray(pointer(np.uint64(numbers.ctypes.data)), 2, AXIS)
        rows, cut = axes[0], axes[1]
        if rows.length <= 0 or cut.length <= 0:
            return 1
        sizes = scratch_sizes(rows, cut, channels, False, words[_ANTIALIAS] != 0, radii)
        total = sizes[5]
        for i in range(5):
            total += sizes[i]
        columns[words[_BYTES], k] = total
        shape = columns[words[_SHAPE] : words[_SHAPE] + 3, k]
        if words[_FINISH] != 0:
            shape[0], shape[1], shape[2] = channels, rows.length, cut.length
        else:
            shape[0], shape[1], shape[2] = rows.length, cut.length, channels
    return 0


@locked_cache
def resampling(dtype: np.dtype) -> Callable[[int, int, int, int], int]:
    """The function that resamples images to elements of a type."""
    like = np.empty(0, STORED_AS.get(dtype, dtype))

    def carry(words_address: int, table: int, count: int, k: int) -> int:
        words, reals = words_at(words_address), reals_at(words_address)
        columns = columns_at(table, count)
        height, width, channels = columns[words[_EXTENTS] : words[_EXTENTS] + 3, k]
        tables, radii = _filters_of(words)
        numbers = _axes_of(words, columns, k)
        axes = numba.carray(pointer(np.uint64(numbers.ctypes.data)), 2, AXIS)
        rows, cut, antialias = axes[0], axes[1], words[_ANTIALIAS] != 0
        sizes = scratch_sizes(rows, cut, channels, False, antialias, radii)
        at, row_first, row_weights, column_first, column_weights, _ = taps_of_image(
            np.uint64(columns[words[_MEMORY], k]),
            sizes,
            rows,
            cut,
            number_of(words, reals, _MIRROR, columns, k)[1] != 0,
            antialias,
            tables,
            radii,
        )
        f = _FINISH
        finish = Finish(
            words[f] != 0,
            words[f + 1] != 0,
            reals[f + 2],
            reals[f + 3],
            words[f + 4] != 0,
            words[f + 5] != 0,
            reals[f + 6],
            reals[f + 7],
        )
        own = _TABLES + _TABLE_PARTS * (channels - 1)
        write_image(
            np.uint64(columns[words[_ADDRESS], k]),
            (height, width, channels),
            0,
            0,
            row_first,
            row_weights,
            column_first,
            column_weights,
            finish,
            floats(words[own], words[own + 1]),
            floats(words[own + 2], words[own + 3]),
            np.uint64(columns[words[_OUT], k]),
            like,
            numba.carray(pointer(at), (sizes[5] // 4,), np.float32),
        )
        return 0

    return carry
