"""Windows of samples, cut by instructions: see `headrace.kernels.cpu.step_loops`.

Words, first of all: those of a view of the samples (`SampleColumns.view_words`); columns of the
windows' address, of their first extent, and of their first stride, or -1 where they are contiguous;
the first column of their anchors; True if windows may reach beyond samples; True if they are copied
in any case; and the bits of an element outside of samples. What follows tells the window.

Of `crop`: True if positions are truncated, the number of axes, and for each its number, the extent
of the window, and its position (see `step_numbers`).

Of `slice`: the kind of the start, the columns of the address and the extent of its values, or -1;
the same of the end; the largest coordinate; the number of axes; and for each its number, and the
start and the end as integer and as fraction, where they are constant.
"""

from __future__ import annotations

import numba
import numpy as np

from headrace.kernels.compilation import njit
from headrace.kernels.cpu.copy_sample import copy_window, fill_elements
from headrace.kernels.cpu.pointers import pointer
from headrace.kernels.cpu.step_loops import columns_at, floats, reals_at, view_strides, words_at
from headrace.kernels.cpu.step_numbers import PARTS, number_of
from headrace.kernels.plan.windows import cut_window, slice_span

_ADDRESS, _EXTENTS, _NDIM, _ITEMSIZE = 0, 1, 3, 4
_OUT, _SHAPE, _STRIDES, _ANCHORS, _MAY_LEAVE, _COPIES, _FILL = range(5, 12)
_REST = 12


@njit(nogil=True)
def _begin(words: np.ndarray, columns: np.ndarray, k: int) -> None:
    """Have the window of sample `k` be all of it."""
    for axis in range(words[_NDIM]):
        columns[words[_ANCHORS] + axis, k] = 0
        columns[words[_SHAPE] + axis, k] = columns[words[_EXTENTS] + axis, k]


@njit(nogil=True)
def _is_inside(words: np.ndarray, columns: np.ndarray, k: int) -> bool:
    for axis in range(words[_NDIM]):
        anchor, size = columns[words[_ANCHORS] + axis, k], columns[words[_SHAPE] + axis, k]
        if anchor < 0 or anchor + size > columns[words[_EXTENTS] + axis, k]:
            return False
    return True


def plan_crop(words_address: int, table: int, count: int, _: int) -> int:
    """Find windows of given extents at relative positions; a position that is none is refused."""
    words, reals = words_at(words_address), reals_at(words_address)
    columns = columns_at(table, count)
    for k in range(count):
        _begin(words, columns, k)
        for i in range(words[_REST + 1]):
            at = _REST + 2 + i * (2 + PARTS)
            axis = words[at]
            is_one, place = number_of(words, reals, at + 2, columns, k)
            wrong, anchor, size = cut_window(
                columns[words[_EXTENTS] + axis, k], words[at + 1], place, words[_REST] != 0
            )
            if wrong or not is_one:
                return 1
            columns[words[_ANCHORS] + axis, k] = anchor
            columns[words[_SHAPE] + axis, k] = size
        if words[_MAY_LEAVE] == 0 and not _is_inside(words, columns, k):
            return 1
    return 0


@njit(nogil=True)
def _coordinate(
    words: np.ndarray,
    reals: np.ndarray,
    at: int,
    constant: int,
    columns: np.ndarray,
    k: int,
    i: int,
    axes: int,
) -> tuple[bool, int, float]:
    """Coordinate of sample `k` along the axis with number `i`: False if there is none, and that as
    integer and fraction. `at` is the word that tells its kind, `constant` that of a constant one.
    """
    kind, address, extent = words[at], words[at + 1], words[at + 2]
    if address < 0:
        return True, words[constant], reals[constant + 1]
    given = 1 if extent < 0 else columns[extent, k]
    if given != axes and given != 1:
        return False, 0, 0.0
    place = i if given > 1 else 0
    values = np.uint64(columns[address, k])
    if kind == 2 or kind == 4:
        return True, 0, np.float64(floats(values, given)[place])
    return True, int(numba.carray(pointer(values), given, np.int32)[place]), 0.0


def plan_slice(words_address: int, table: int, count: int, _: int) -> int:
    """Find windows between coordinates; what is none, or leaves its sample but must not, is
    refused.
    """
    words, reals = words_at(words_address), reals_at(words_address)
    columns = columns_at(table, count)
    begin, end, farthest, axes = (
        words[_REST],
        words[_REST + 3],
        words[_REST + 6],
        words[_REST + 7],
    )
    for k in range(count):
        _begin(words, columns, k)
        for i in range(axes):
            at = _REST + 8 + 5 * i
            axis = words[at]
            is_start, first, first_part = _coordinate(
                words, reals, _REST, at + 1, columns, k, i, axes
            )
            is_end, last, last_part = _coordinate(
                words, reals, _REST + 3, at + 3, columns, k, i, axes
            )
            first = min(max(first, -farthest), farthest)
            last = min(max(last, -farthest), farthest)
            extent = columns[words[_EXTENTS] + axis, k]
            wrong, anchor, size = slice_span(
                extent, begin, first, first_part, end, last, last_part, farthest
            )
            if wrong or not (is_start and is_end):
                return 1
            columns[words[_ANCHORS] + axis, k] = anchor
            columns[words[_SHAPE] + axis, k] = size
        if words[_MAY_LEAVE] == 0 and not _is_inside(words, columns, k):
            return 1
    return 0


@njit(nogil=True)
def _view(words: np.ndarray, columns: np.ndarray, k: int) -> None:
    """Have the window of sample `k` be a view of it."""
    source = columns[words[_ADDRESS], k]
    strides = view_strides(words, columns, k)
    for axis in range(words[_NDIM]):
        source += columns[words[_ANCHORS] + axis, k] * strides[axis]
        if words[_STRIDES] >= 0:
            columns[words[_STRIDES] + axis, k] = strides[axis]
    columns[words[_OUT], k] = source


def carry_view(words_address: int, table: int, count: int, k: int) -> int:
    """Cut a window that lies in its sample and is not to be copied; compiled in no time."""
    _view(words_at(words_address), columns_at(table, count), k)
    return 0


def carry(words_address: int, table: int, count: int, k: int) -> int:
    """Cut a window: a view of the sample, unless it reaches beyond it or is to be copied."""
    words, columns = words_at(words_address), columns_at(table, count)
    ndim, itemsize = words[_NDIM], words[_ITEMSIZE]
    inside = _is_inside(words, columns, k)
    if inside and words[_COPIES] == 0:
        _view(words, columns, k)
        return 0
    source = columns[words[_ADDRESS], k]
    strides = view_strides(words, columns, k)
    anchors = columns[words[_ANCHORS] : words[_ANCHORS] + ndim, k]
    shape = columns[words[_SHAPE] : words[_SHAPE] + ndim, k]
    size = itemsize
    for axis in range(ndim - 1, -1, -1):
        if words[_STRIDES] >= 0:
            columns[words[_STRIDES] + axis, k] = size
        size *= shape[axis]
    target = np.uint64(columns[words[_OUT], k])
    if not inside:
        fill_elements(target, size // itemsize, itemsize, words[_FILL])
    extents = columns[words[_EXTENTS] : words[_EXTENTS] + ndim, k]
    copy_window(source, strides, extents, anchors, shape, target, itemsize)
    return 0
