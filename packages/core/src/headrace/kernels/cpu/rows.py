"""Views as rows of contiguous elements: how compiled loops read windows without copying them."""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import as_strided


def read_only(array: np.ndarray) -> np.ndarray:
    """A view of `array` that cannot be written to.

    To compiled loops such an array is a type of its own. Inputs are sometimes of that type: where
    they always are, loops are compiled only once.
    """
    view = array.view()
    view.setflags(write=False)  # in less time than by `flags`
    return view


def as_rows(source: np.ndarray) -> tuple[np.ndarray, int, int, int]:
    """`source` as ``(flat, rows, width, stride)``.

    Row ``r`` of `source` is ``flat[r * stride : r * stride + width]``. Contiguous arrays are one
    row; windows of them, such as crops, are read in place; anything else is copied.
    """
    if source.flags.c_contiguous:
        flat = source.reshape(-1)  # a new view always
        flat.setflags(write=False)
        return flat, 1, flat.size, 0
    shape, strides, itemsize = source.shape, source.strides, source.itemsize
    if source.size == 0:
        return read_only(np.empty(0, source.dtype)), 0, 0, 0
    axis = source.ndim - 1
    width, expected = 1, itemsize
    while axis >= 0 and (shape[axis] == 1 or strides[axis] == expected):
        width *= shape[axis]
        expected *= shape[axis]
        axis -= 1
    rows, stride = 1, strides[axis]
    merged = stride
    while axis >= 0 and (shape[axis] == 1 or strides[axis] == merged):
        rows *= shape[axis]
        merged *= shape[axis]
        axis -= 1
    if axis >= 0 or stride < 0 or stride % itemsize:
        return read_only(np.ascontiguousarray(source).reshape(-1)), 1, source.size, 0
    stride //= itemsize
    flat = as_strided(source, ((rows - 1) * stride + width,), (itemsize,), writeable=False)
    return flat, rows, width, stride
