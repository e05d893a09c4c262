"""Mirror images of samples, and copies of views, by instructions: see
`headrace.kernels.cpu.step_loops`.

Words, first of all: those of a view of the samples (`SampleColumns.view_words`), and columns of the
output's address and of its first extent. Then, of mirror images: the column of their first stride,
the number of axes, and for each its number, and whether to mirror along it (see `step_numbers`); of
reordered axes: the column of their first stride, and for each axis that of the samples.
"""

from __future__ import annotations

import numpy as np

from headrace.kernels.cpu.copy_sample import copy_sample
from headrace.kernels.cpu.step_loops import columns_at, reals_at, view_strides, words_at
from headrace.kernels.cpu.step_numbers import PARTS, number_of

_MOST_TRANSPOSED = 1 << 14
_ADDRESS, _EXTENTS, _NDIM, _ITEMSIZE, _OUT, _SHAPE, _STRIDES, _AXES = 0, 1, 3, 4, 5, 6, 7, 8


def plan(words_address: int, table: int, count: int, _: int) -> int:
    """Find the extents of outputs: those of the samples."""
    words, columns = words_at(words_address), columns_at(table, count)
    for axis in range(words[_NDIM]):
        for k in range(count):
            columns[words[_SHAPE] + axis, k] = columns[words[_EXTENTS] + axis, k]
    return 0


def plan_mirrored(words_address: int, table: int, count: int, _: int) -> int:
    """The same; samples that are told in another way than by one number are refused."""
    words, reals = words_at(words_address), reals_at(words_address)
    columns = columns_at(table, count)
    for k in range(count):
        for axis in range(words[_NDIM]):
            columns[words[_SHAPE] + axis, k] = columns[words[_EXTENTS] + axis, k]
        for i in range(words[_AXES]):
            if not number_of(words, reals, _AXES + 2 + i * (1 + PARTS), columns, k)[0]:
                return 1
    return 0


def carry_mirrored(words_address: int, table: int, count: int, k: int) -> int:
    """Mirror one sample: a view of it."""
    words, reals = words_at(words_address), reals_at(words_address)
    columns = columns_at(table, count)
    source = columns[words[_ADDRESS], k]
    strides = view_strides(words, columns, k)
    for i in range(words[_AXES]):
        at = _AXES + 1 + i * (1 + PARTS)
        axis = words[at]
        extent = columns[words[_EXTENTS] + axis, k]
        if number_of(words, reals, at + 1, columns, k)[1] != 0 and extent > 0:
            source += (extent - 1) * strides[axis]
            strides[axis] = -strides[axis]
    for axis in range(words[_NDIM]):
        columns[words[_STRIDES] + axis, k] = strides[axis]
    columns[words[_OUT], k] = source
    return 0


def plan_transposed(words_address: int, table: int, count: int, _: int) -> int:
    """Find the extents of outputs; large samples are refused: others have better loops for them."""
    words, columns = words_at(words_address), columns_at(table, count)
    for k in range(count):
        size = 1
        for axis in range(words[_NDIM]):
            extent = columns[words[_EXTENTS] + words[_AXES + axis], k]
            columns[words[_SHAPE] + axis, k] = extent
            size *= extent
        if size > _MOST_TRANSPOSED:
            return 1
    return 0


def carry_transposed(words_address: int, table: int, count: int, k: int) -> int:
    """Reorder the axes of one sample: a view of it."""
    words, columns = words_at(words_address), columns_at(table, count)
    strides = view_strides(words, columns, k)
    for axis in range(words[_NDIM]):
        columns[words[_STRIDES] + axis, k] = strides[words[_AXES + axis]]
    columns[words[_OUT], k] = columns[words[_ADDRESS], k]
    return 0


def carry_copied(words_address: int, table: int, count: int, k: int) -> int:
    """Copy one sample to contiguous memory."""
    words, columns = words_at(words_address), columns_at(table, count)
    ndim = words[_NDIM]
    copy_sample(
        columns[words[_ADDRESS], k],
        view_strides(words, columns, k),
        columns[words[_SHAPE] : words[_SHAPE] + ndim, k],
        np.uint64(columns[words[_OUT], k]),
        words[_ITEMSIZE],
        np.empty(ndim, np.int64),
    )
    return 0
