"""Levels replaced by what a table has for them."""

from __future__ import annotations

import numpy as np

from headrace.kernels.compilation import njit
from headrace.kernels.cpu.lookup import look_up

_RGB = 3


def map_levels(source: np.ndarray, table: np.ndarray, out: np.ndarray) -> None:
    """Fill `out` with what `table` has for each level of `source`."""
    channels = table.shape[1]
    if channels == 1:
        look_up(source, np.ascontiguousarray(table[:, 0]), out)
    elif channels == _RGB:
        pixels = np.ascontiguousarray(source).reshape(-1)
        _map_rgb(pixels, np.ascontiguousarray(table.T), out.reshape(-1))
    else:
        out[...] = table[source, np.arange(channels)]


@njit(nogil=True)
def _map_rgb(source: np.ndarray, tables: np.ndarray, out: np.ndarray) -> None:
    red, green, blue = tables[0], tables[1], tables[2]
    for i in range(0, len(source), 3):
        out[np.uintp(i)] = red[source[np.uintp(i)]]
        out[np.uintp(i + 1)] = green[source[np.uintp(i + 1)]]
        out[np.uintp(i + 2)] = blue[source[np.uintp(i + 2)]]
