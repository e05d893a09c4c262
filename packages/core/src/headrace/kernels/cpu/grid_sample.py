"""Pixels looked up at the points of a grid, as PyTorch's `grid_sample` has it.

Points are ``(x, y)`` from -1 to 1, the outer edges of the image. Pixels outside count as zero; of
what is interpolated, the part that lies outside is then taken from a fill value, as torchvision
does. Some points at a time, places are found first, by vectors, and pixels then plane by plane.
"""

from __future__ import annotations

import numpy as np

from headrace.kernels.compilation import njit

_F = np.float32
_ZERO, _HALF, _ONE = _F(0), _F(0.5), _F(1)
_CHUNK = 1024


@njit(nogil=True, error_model="numpy")
def _nearest_places(points: np.ndarray, height: int, width: int, places: np.ndarray) -> None:
    across, down = _F(width / 2), _F(height / 2)
    right, bottom = _F(width - 1), _F(height - 1)
    for i in range(points.shape[0]):
        x = np.rint((points[i, 0] + _ONE) * across - _HALF)  # halves belong to the even pixel
        y = np.rint((points[i, 1] + _ONE) * down - _HALF)
        inside = (x >= _ZERO) & (y >= _ZERO) & (x <= right) & (y <= bottom)
        column = np.int32(min(max(x, _ZERO), right))
        row = np.int32(min(max(y, _ZERO), bottom))
        places[i] = row * np.int32(width) + column if inside else np.int32(-1)


@njit(nogil=True, error_model="numpy")
def sample_nearest(
    source: np.ndarray, grid: np.ndarray, fill: np.ndarray, height: int, width: int, out: np.ndarray
) -> None:
    """Nearest pixels of planes ``(C, H * W)``; `grid`: ``(N, 2)`` float32, `out`: ``(C, N)``."""
    places = np.empty(_CHUNK, np.int32)
    for begin in range(0, grid.shape[0], _CHUNK):
        points = grid[begin : begin + _CHUNK]
        count = points.shape[0]
        _nearest_places(points, height, width, places)
        for c in range(source.shape[0]):
            plane, row, value = source[c], out[c, begin : begin + count], fill[c]
            for i in range(count):
                place = places[i]
                row[i] = plane[np.uintp(place)] if place >= 0 else value


@njit(nogil=True, error_model="numpy")
def _linear_places(
    points: np.ndarray,
    height: int,
    width: int,
    places: np.ndarray,
    lefts: np.ndarray,
    tops: np.ndarray,
) -> None:
    """Places of upper left pixels, and shares; -1 where a neighbour is missing, -2 where all."""
    across, down = _F(width / 2), _F(height / 2)
    right, bottom = _F(width - 1), _F(height - 1)
    for i in range(points.shape[0]):
        x = (points[i, 0] + _ONE) * across - _HALF
        y = (points[i, 1] + _ONE) * down - _HALF
        column, row = np.floor(x), np.floor(y)
        lefts[i], tops[i] = x - column, y - row
        inside = (column >= _ZERO) & (row >= _ZERO) & (column < right) & (row < bottom)
        whole_column = np.int32(min(max(column, _ZERO), right))
        whole_row = np.int32(min(max(row, _ZERO), bottom))
        near = (column >= -_ONE) & (row >= -_ONE) & (column <= right) & (row <= bottom)
        place = whole_row * np.int32(width) + whole_column
        other = np.int32(-1) if near else np.int32(-2)
        places[i] = place if inside else other


@njit(nogil=True, error_model="numpy")
def _at(plane: np.ndarray, row: int, column: int, height: int, width: int) -> np.float32:
    if 0 <= row < height and 0 <= column < width:
        return _F(plane[row * width + column])
    return _ZERO


@njit(nogil=True, error_model="numpy")
def _at_border(
    plane: np.ndarray, point: np.ndarray, fill: np.float32, fills: bool, height: int, width: int
) -> np.float32:
    x = (point[0] + _ONE) * _F(width / 2) - _HALF
    y = (point[1] + _ONE) * _F(height / 2) - _HALF
    value, inside = _ZERO, _ZERO
    if _F(-1) < x and x < _F(width) and _F(-1) < y and y < _F(height):
        left, top = int(np.floor(x)), int(np.floor(y))
        across, down = x - _F(left), y - _F(top)
        for row in range(2):
            for column in range(2):
                share = (across if column else _ONE - across) * (down if row else _ONE - down)
                value += _at(plane, top + row, left + column, height, width) * share
                if 0 <= top + row < height and 0 <= left + column < width:
                    inside += share
    return value * inside + (_ONE - inside) * fill if fills else value


@njit(nogil=True, error_model="numpy")
def sample_linear(
    source: np.ndarray,
    grid: np.ndarray,
    fill: np.ndarray,
    fills: bool,
    rounds: bool,
    height: int,
    width: int,
    out: np.ndarray,
) -> None:
    """Pixels interpolated linearly; `rounds`: to whole numbers, as bytes need it."""
    places = np.empty(_CHUNK, np.int32)
    lefts, tops = np.empty(_CHUNK, np.float32), np.empty(_CHUNK, np.float32)
    for begin in range(0, grid.shape[0], _CHUNK):
        points = grid[begin : begin + _CHUNK]
        count = points.shape[0]
        _linear_places(points, height, width, places, lefts, tops)
        for c in range(source.shape[0]):
            plane, row = source[c], out[c, begin : begin + count]
            outside = fill[c] if fills else _ZERO
            for i in range(count):
                value = outside
                if places[i] >= 0:
                    place = np.uintp(places[i])
                    below = place + np.uintp(width)
                    across, down = lefts[i], tops[i]
                    left, right = _F(plane[place]), _F(plane[place + np.uintp(1)])
                    upper = left + (right - left) * across
                    left, right = _F(plane[below]), _F(plane[below + np.uintp(1)])
                    lower = left + (right - left) * across
                    value = upper + (lower - upper) * down
                elif places[i] == -1:
                    value = _at_border(plane, points[i], fill[c], fills, height, width)
                row[i] = np.rint(value) if rounds else value


@njit(nogil=True, error_model="numpy")
def affine_grid(matrix: np.ndarray, height: int, width: int, out: np.ndarray) -> None:
    """Fill a grid ``(H, W, 2)`` with where an affine map, float32 ``(2, 3)``, has its points.

    The map is of pixels from the centre; `height` and `width` are those of the image looked up.
    """
    across, down = _F(0.5 * width), _F(0.5 * height)
    a, b, c = matrix[0, 0] / across, matrix[0, 1] / across, matrix[0, 2] / across
    d, e, f = matrix[1, 0] / down, matrix[1, 1] / down, matrix[1, 2] / down
    rows, columns = out.shape[0], out.shape[1]
    for row in range(rows):
        y = _F(row) - _F(0.5 * (rows - 1))
        first, second = y * b + c, y * e + f
        line = out[row]
        for column in range(columns):
            x = _F(column) - _F(0.5 * (columns - 1))
            line[column, 0] = x * a + first
            line[column, 1] = x * d + second


@njit(nogil=True, error_model="numpy")
def perspective_grid(numbers: np.ndarray, out: np.ndarray) -> None:
    """Fill a grid ``(H, W, 2)`` with where a perspective, eight float32, has its points.

    The map is of pixels' centres from the upper left corner; the image looked up is as large.
    """
    rows, columns = out.shape[0], out.shape[1]
    across, down = _F(0.5 * columns), _F(0.5 * rows)
    a, b, c = numbers[0] / across, numbers[1] / across, numbers[2] / across
    d, e, f = numbers[3] / down, numbers[4] / down, numbers[5] / down
    g, h = numbers[6], numbers[7]
    for row in range(rows):
        y = _F(row) + _HALF
        first, second, third = y * b + c, y * e + f, y * h + _ONE
        line = out[row]
        for column in range(columns):
            x = _F(column) + _HALF
            depth = x * g + third
            line[column, 0] = (x * a + first) / depth - _ONE
            line[column, 1] = (x * d + second) / depth - _ONE
