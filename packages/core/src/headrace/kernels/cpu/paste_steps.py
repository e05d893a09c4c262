"""Images put on canvases of one colour, by instructions: see `headrace.kernels.cpu.step_loops`.

Words: those of a view of the images (`SampleColumns.view_words`); columns of the canvas' address
and of its first extent; the first column of the images' places in it; and the address of a pixel of
the canvas, and its bytes. Elements are bytes.
"""

from __future__ import annotations

import numba
import numpy as np

from headrace.kernels.cpu.copy_sample import copy_window
from headrace.kernels.cpu.pointers import pointer
from headrace.kernels.cpu.step_loops import columns_at, view_strides, volume, words_at

_ADDRESS, _EXTENTS, _NDIM, _OUT, _SHAPE, _PLACES, _FILL, _CHANNELS = 0, 1, 3, 5, 6, 7, 8, 9


def carry(words_address: int, table: int, count: int, k: int) -> int:
    """Put one image on its canvas."""
    words, columns = words_at(words_address), columns_at(table, count)
    ndim, channels = words[_NDIM], words[_CHANNELS]
    size = volume(columns, words[_SHAPE], ndim, k)
    target = np.uint64(columns[words[_OUT], k])
    canvas = numba.carray(pointer(target), size, np.uint8)
    fill = numba.carray(pointer(np.uint64(words[_FILL])), channels, np.uint8)
    channel = 0
    for i in range(size):
        canvas[i] = fill[channel]
        channel = channel + 1 if channel + 1 < channels else 0
    places = np.empty(ndim, np.int64)
    for axis in range(ndim):
        places[axis] = -columns[words[_PLACES] + axis, k]
    copy_window(
        columns[words[_ADDRESS], k],
        view_strides(words, columns, k),
        columns[words[_EXTENTS] : words[_EXTENTS] + ndim, k],
        places,
        columns[words[_SHAPE] : words[_SHAPE] + ndim, k],
        target,
        1,
    )
    return 0
