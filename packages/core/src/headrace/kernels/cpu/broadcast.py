"""Run an elementwise function over arrays that broadcast, in tiles that stay in the cache.

NumPy's own loop runs along the last axis. Where that is three channels long, as for an image and
one number a channel, the loop's set-up costs far more than its work; so axes are merged as far as
memory allows, and short patterns are repeated to long ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

Arrays = Sequence[np.ndarray]
Function = Callable[[np.ndarray, list[np.ndarray]], None]
"""Called with a tile of the output and the matching tiles of the operands."""

_SHORT = 256
_LONG = 3072
_CHANNELS = 16


def common_shape(shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """The shape that `shapes` broadcast to, aligned at their last axes."""
    ndim = max(map(len, shapes))
    found = [1] * ndim
    for shape in shapes:
        for axis, extent in enumerate(shape, ndim - len(shape)):
            if extent == found[axis] or extent == 1:
                continue
            if found[axis] != 1:
                raise ValueError(shapes)
            found[axis] = extent
    return tuple(found)


def run_tiled(function: Function, out: np.ndarray, operands: Arrays, tile: int) -> None:
    """Call `function` over tiles of at most `tile` elements that together make up `out`.

    `operands`: arrays with any strides that broadcast to `out`.
    """
    if out.size == 0:
        return
    if all(x.shape == out.shape and x.flags.c_contiguous for x in operands):
        if out.size <= tile:
            function(out, list(operands))
        else:
            _run_line(function, out.reshape(-1), [x.reshape(-1) for x in operands], tile)
        return
    out, operands = _merged(out, operands)
    if out.ndim == 2 and out.shape[1] < min(_SHORT, tile) and out.shape[0] > 1:
        _run_short_rows(function, out, operands, tile)
    else:
        _run_blocks(function, out, operands, tile)


def _merged(out: np.ndarray, operands: Arrays) -> tuple[np.ndarray, list[np.ndarray]]:
    """Views with as few axes as possible, all with the same number; extents of 1 broadcast."""
    ndim = out.ndim
    arrays = [out, *(x.reshape((1,) * (ndim - x.ndim) + x.shape) for x in operands)]
    groups: list[list[int]] = []
    for axis in range(ndim - 1, -1, -1):
        if out.shape[axis] == 1:
            continue
        if groups and all(_mergeable(x, axis, groups[-1][-1]) for x in arrays):
            groups[-1].append(axis)
        else:
            groups.append([axis])
    groups.reverse()
    shapes = [tuple(math.prod(x.shape[axis] for axis in group) for group in groups) for x in arrays]
    views = [x.reshape(shape) for x, shape in zip(arrays, shapes, strict=True)]
    return views[0], views[1:]


def _mergeable(x: np.ndarray, axis: int, following: int) -> bool:
    if x.shape[axis] == 1 or x.shape[following] == 1:
        return x.shape[axis] == x.shape[following]
    return x.strides[axis] == x.strides[following] * x.shape[following]


def _run_line(function: Function, out: np.ndarray, operands: Arrays, tile: int) -> None:
    """Tiles of one axis."""
    for start in range(0, out.shape[0], tile):
        stop = start + tile
        function(out[start:stop], [x if x.shape[0] == 1 else x[start:stop] for x in operands])


def _run_short_rows(function: Function, out: np.ndarray, operands: Arrays, tile: int) -> None:
    """Two axes, of which the last is short."""
    count, width = out.shape
    whole = [x.shape == out.shape for x in operands]
    per_row = any(x.shape == (count, 1) for x in operands)
    dense = all(x.flags.c_contiguous for x, w in zip(operands, whole, strict=True) if w)
    if not per_row and dense:
        _run_repeated_rows(function, out, operands, tile)
    elif width <= _CHANNELS:
        for j in range(width):
            columns = [x[:, j if x.shape[1] > 1 else 0] for x in operands]
            _run_line(function, out[:, j], columns, tile)
    else:
        _run_blocks(function, out, operands, tile)


def _run_repeated_rows(function: Function, out: np.ndarray, operands: Arrays, tile: int) -> None:
    """Rows that follow one another in memory, with operands that are the same for every row.

    Several rows make a longer one; what is the same for every row is repeated to match.
    """
    count, width = out.shape
    together = min(min(_LONG, tile) // width, count)
    length = together * width
    lines = count // together
    head = lines * together
    long_out = out[:head].reshape(lines, length)
    long: list[np.ndarray] = []
    for x in operands:
        if x.shape[0] == count:
            long.append(x[:head].reshape(lines, length))
        elif x.shape[1] == 1:
            long.append(x)
        else:
            repeated = np.empty((together, width), x.dtype)
            repeated[:] = x
            long.append(repeated.reshape(1, length))
    _run_blocks(function, long_out, long, tile)
    if head < count:
        rest = [x[head:] if x.shape[0] == count else x for x in operands]
        function(out[head:], rest)


def _run_blocks(function: Function, out: np.ndarray, operands: Arrays, tile: int) -> None:
    """Any number of axes: blocks of whole leading indices where they fit, else one by one."""
    if out.size <= tile:
        function(out, list(operands))
        return
    if out.ndim == 1:
        _run_line(function, out, operands, tile)
        return
    rest = out.size // out.shape[0]
    if rest <= tile:
        _run_line(function, out, operands, tile // rest)
        return
    for i in range(out.shape[0]):
        _run_blocks(function, out[i], [x[i if x.shape[0] > 1 else 0] for x in operands], tile)
