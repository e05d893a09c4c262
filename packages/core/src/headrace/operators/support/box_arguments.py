"""Arguments of operators on boxes: layouts, extents and ranges."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from headrace.errors import ArgumentValueError, LayoutError, ShapeError


@functools.cache
def columns(
    layout: str | None, ndim: int, *, ltrb: bool | None
) -> tuple[np.ndarray, np.ndarray, bool]:
    """Columns of a box that hold its begins and its ends, and whether the latter are extents.

    The arrays are kept, and not to be changed. Without `layout`, ends follow begins, or extents if
    `ltrb` is false.
    """
    axes, ends, extents = "xyz"[:ndim], "XYZ"[:ndim], "WHD"[:ndim]
    if layout is None:
        layout = axes + (extents if ltrb is False else ends)
    if sorted(layout) not in (sorted(axes + ends), sorted(axes + extents)):
        raise LayoutError(
            f'`bbox_layout` should be a permutation of "{axes + ends}" or "{axes + extents}", '
            f'got "{layout}".'
        )
    shaped = "W" in layout
    begin, end = [[layout.index(a) for a in part] for part in (axes, extents if shaped else ends)]
    return np.array(begin), np.array(end), shaped


def extents(
    name: str, given: Sequence[Any], layout: str | None, ndim: int, count: int
) -> np.ndarray:
    """Extents in the order x, y, z, float32 ``(count, ndim)``, of argument `name`."""
    axes = "WHD"[:ndim]
    order = layout or axes
    if sorted(order) != sorted(axes):
        raise LayoutError(f'`shape_layout` should be a permutation of "{axes}", got "{order}".')
    for each in given:
        if len(each) != ndim:
            raise ShapeError(f"`{name}` must have {ndim} elements, got {len(each)}.")
        if min(each) <= 0:
            raise ArgumentValueError(f"`{name}` must be positive, got {each}.")
    found = np.array(given, np.float32)[:, [order.index(a) for a in axes]]
    return np.ascontiguousarray(np.broadcast_to(found, (count, ndim)))


def ranges(name: str, values: Any, counts: tuple[int, ...]) -> np.ndarray:
    """Ranges, smallest and largest, float32 ``(ranges, 2)``; (1, 1) where nothing is given."""
    if values is None:
        return np.ones((1, 2), np.float32)
    if len(values) not in counts:
        raise ArgumentValueError(
            f"`{name}` must be a range, [min, max], or three of them for volumes; got "
            f"{len(values)} values."
        )
    found = np.array(values, np.float32).reshape(-1, 2)
    if not ((found >= 0).all() and (found[:, 0] <= found[:, 1]).all()):
        raise ArgumentValueError(
            f"`{name}` range must be positive and min <= max, got {list(values)}."
        )
    return found
