"""Paints regions, outlined or run-length encoded as in COCO's annotations, into masks of labels."""

from __future__ import annotations

import numpy as np

from headrace.kernels.compilation import njit

_SCALE = 5
"""Outlines are followed on a grid this many times as fine as pixels."""


@njit(nogil=True)
def paint(
    values: np.ndarray,
    ends: np.ndarray,
    are_runs: np.ndarray,
    labels: np.ndarray,
    out: np.ndarray,
) -> None:
    """Write the labels of regions into their pixels, one after the other.

    `values`: float32: of each region the x and y of its vertices in pixels; or the lengths of its
    runs, int32 in their bits, the first of which is outside, and all of them inside `out`. `ends`:
    int64 ``(regions,)``: where in `values` those of each region end, for a first one at 0.
    `labels`: int32 ``(regions,)``. `out`: int32 ``(height, width)``.
    """
    height = out.shape[0]
    pixels = out.size
    begin = 0
    for region in range(len(ends)):
        part = values[begin : ends[region]]
        begin = ends[region]
        if are_runs[region]:
            borders = np.cumsum(part.view(np.int32))
        else:
            borders = _borders(part, height, out.shape[1])
            borders.sort()
        # Each border changes sides, so that pixels are inside between the first two, and so on.
        for k in range(0, len(borders), 2):
            after = borders[k] if are_runs[region] else pixels
            stop = borders[k + 1] if k + 1 < len(borders) else after
            for pixel in range(borders[k], min(stop, pixels)):
                out[pixel % height, pixel // height] = labels[region]


@njit(nogil=True)
def _borders(vertices: np.ndarray, height: int, width: int) -> np.ndarray:
    """The pixels, counted down the columns, at which an outline is crossed."""
    count = len(vertices) // 2
    x = np.empty(count + 1, np.int64)
    y = np.empty(count + 1, np.int64)
    for k in range(count):
        x[k] = np.int64(_SCALE * np.float64(vertices[2 * k]) + 0.5)
        y[k] = np.int64(_SCALE * np.float64(vertices[2 * k + 1]) + 0.5)
    if count:
        x[count], y[count] = x[0], y[0]
    steps = 0
    for k in range(count):
        steps += max(abs(x[k + 1] - x[k]), abs(y[k + 1] - y[k])) + 1
    found = np.empty(steps, np.int64)
    total = 0
    last_u, last_v, is_first = 0, 0, True
    for k in range(count):
        dx, dy = x[k + 1] - x[k], y[k + 1] - y[k]
        length = max(abs(dx), abs(dy))
        for step in range(length + 1):
            u, v = _on_edge(x[k], y[k], dx, dy, step)
            if not is_first and u != last_u:
                column = (min(u, last_u) + 0.5) / _SCALE - 0.5
                if column == np.floor(column) and 0 <= column <= width - 1:
                    row = (min(v, last_v) + 0.5) / _SCALE - 0.5
                    row = np.ceil(min(max(row, 0.0), np.float64(height)))
                    found[total] = np.int64(column) * height + np.int64(row)
                    total += 1
            last_u, last_v, is_first = u, v, False
    return found[:total]


@njit(nogil=True)
def _on_edge(x: int, y: int, dx: int, dy: int, step: int) -> tuple[int, int]:
    """The point of the fine grid, `step` steps along an edge from (x, y) by (dx, dy).

    The edge is sampled from its end that comes first on its longer axis.
    """
    along, across = (dx, dy) if abs(dx) >= abs(dy) else (dy, dx)
    length = abs(along)
    slope = across / along if length else 0.0
    at = step if along >= 0 else length - step
    first_x, first_y = (x, y) if along >= 0 else (x + dx, y + dy)
    if abs(dx) >= abs(dy):
        return first_x + at, int(first_y + slope * at + 0.5)
    return int(first_x + slope * at + 0.5), first_y + at
