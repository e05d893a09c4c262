"""Boxes of several samples: read from where they are, and written as shares of windows.

There are few of them: loops keep the interpreter, which takes longer to get back.
"""

from __future__ import annotations

import numba
import numpy as np

from headrace.kernels.compilation import njit
from headrace.kernels.cpu.pointers import elements


@njit()
def read_boxes(
    addresses: np.ndarray,
    firsts: np.ndarray,
    begins: np.ndarray,
    ends: np.ndarray,
    shaped: bool,
    given: np.ndarray,
) -> int:
    """Fill `given` with the boxes of samples, where they begin and where they end.

    Returns the first one that is not between 0 and 1, or -1. Columns `begins` and `ends` of float32
    boxes at `addresses` say it; if `shaped`, the latter are extents.
    """
    ndim, wrong = len(begins), -1
    most = np.float32(1) + np.float32(1e-6)  # of what has been divided and added
    for k in range(len(addresses)):
        count = firsts[k + 1] - firsts[k]
        source = numba.carray(elements(addresses[k], given), (count, 2 * ndim))
        for i in range(count):
            row = firsts[k] + i
            for d in range(ndim):
                begin, end = source[i, begins[d]], source[i, ends[d]]
                if shaped:
                    end += begin
                given[row, d], given[row, ndim + d] = begin, end
                if wrong < 0 and (begin < 0 or end > most):
                    wrong = row
    return wrong


@njit()
def scatter_rows(values: np.ndarray, out: np.ndarray, begins: np.ndarray) -> None:
    """Put rows of `values` where samples begin in `out`, flat."""
    for k in range(len(begins)):
        for d in range(values.shape[1]):
            out[begins[k] + d] = values[k, d]


@njit()
def counts(kept: np.ndarray, firsts: np.ndarray) -> np.ndarray:
    """Number of boxes of each sample that stay, int64."""
    found = np.zeros(len(firsts) - 1, np.int64)
    for k in range(len(found)):
        for row in range(firsts[k], firsts[k + 1]):
            found[k] += kept[row]
    return found


@njit(error_model="numpy")
def crop_boxes(
    given: np.ndarray,
    firsts: np.ndarray,
    kept: np.ndarray,
    windows: np.ndarray,
    begins: np.ndarray,
    ends: np.ndarray,
    shaped: bool,
    out: np.ndarray,
    places: np.ndarray,
) -> None:
    """Write the boxes that stay as shares of windows, in the columns that `read_boxes` read."""
    ndim = len(begins)
    part = np.empty(2, np.float32)
    for k in range(len(places)):
        place = places[k]
        for row in range(firsts[k], firsts[k + 1]):
            if not kept[row]:
                continue
            for d in range(ndim):
                for end in range(2):
                    value = (given[row, end * ndim + d] - windows[k, d]) / windows[k, ndim + d]
                    value = np.float32(0) if value < 0 else value
                    part[end] = np.float32(1) if value > 1 else value
                out[place + begins[d]] = part[0]
                out[place + ends[d]] = part[1] - part[0] if shaped else part[1]
            place += 2 * ndim


@njit()
def keep_rows(
    addresses: np.ndarray,
    widths: np.ndarray,
    firsts: np.ndarray,
    kept: np.ndarray,
    out: np.ndarray,
    places: np.ndarray,
) -> None:
    """Write what boxes that stay have at `addresses`, ``widths[k]`` numbers each."""
    for k in range(len(places)):
        place, width = places[k], widths[k]
        count = firsts[k + 1] - firsts[k]
        source = numba.carray(elements(addresses[k], out), count * width)
        for i in range(count):
            if kept[firsts[k] + i]:
                for j in range(width):
                    out[place + j] = source[i * width + j]
                place += width


@njit()
def keep_numbers(firsts: np.ndarray, kept: np.ndarray, out: np.ndarray, places: np.ndarray) -> None:
    """Write the numbers of boxes that stay."""
    for k in range(len(places)):
        place = places[k]
        for row in range(firsts[k], firsts[k + 1]):
            if kept[row]:
                out[place] = row - firsts[k]
                place += 1
