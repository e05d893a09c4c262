"""Axes of data as users count or name them."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.errors import ArgumentValueError, LayoutError, OutOfRangeError


def named_axes(names: str, layout: str) -> tuple[int, ...]:
    """Positions in `layout` of the letters in `names`."""
    found = []
    for letter in names:
        position = layout.find(letter)
        if position < 0:
            described = f'the input layout "{layout}"' if layout else "data without a layout"
            raise LayoutError(
                f"`axis_names` is \"{names}\". Axis '{letter}' is not present in {described}. "
                "Give `axes` or `axis_names`, or set the layout with `reshape(layout=...)`."
            )
        found.append(position)
    return tuple(found)


def checked_axes(axes: Sequence[int], ndim: int) -> tuple[int, ...]:
    """Axes counted from the front, each in range and there once."""
    resolved = []
    for axis in axes:
        if not -ndim <= axis < ndim:
            raise OutOfRangeError(
                f"Axis index out of range: axis {axis} of `axes` is out of range. Expected range "
                f"is [{-ndim}, {ndim - 1}] for a {ndim}D input."
            )
        resolved.append(axis % ndim)
    if len(set(resolved)) != len(resolved):
        raise ArgumentValueError(f"The axes name one more than once: {list(axes)}.")
    return tuple(resolved)
