"""Shapes that broadcast, for all samples of a batch at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np


def common_shapes(shapes: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """The shapes that each sample's operands broadcast to, aligned at their last axes.

    `shapes`: for each operand int64 ``(samples, ndim)``. Returns int64 ``(samples, ndim)``, and the
    numbers of the samples whose operands do not fit.
    """
    # A number fits anything. What is left is often a single operand, or of the same shapes.
    shapes = [s for s in shapes if s.shape[1]] or shapes[:1]
    first = shapes[0]
    if all(s is first or (s.shape == first.shape and np.array_equal(s, first)) for s in shapes):
        return first, _NOBODY
    ndim = max(s.shape[1] for s in shapes)
    found = np.ones((len(first), ndim), np.int64)
    bad = np.zeros(len(first), np.bool_)
    for s in shapes:
        axes = found[:, ndim - s.shape[1] :]
        bad |= ((s != axes) & (s != 1) & (axes != 1)).any(axis=1)
        np.copyto(axes, s, where=axes == 1)
    return found, np.flatnonzero(bad)


_NOBODY = np.empty(0, np.int64)


class Merged(NamedTuple):
    """Samples and what is read along with them, seen with as few axes as possible."""

    extents: np.ndarray
    """int64 ``(samples, axes)``, of the whole samples."""
    strides: list[np.ndarray]
    """For each operand int64 ``(samples, axes)``."""


def merged_axes(shapes: np.ndarray, strides: Sequence[np.ndarray]) -> Merged:
    """Join axes along which all operands of all samples go on evenly.

    An axis joins the one after it where its stride is that of the other times the other's extent.
    Where one of the two has a single element, it does anyway, but all samples must agree.

    `shapes`: int64 ``(samples, ndim)``, of the whole samples, with at least one axis. `strides`:
    for each operand int64 ``(samples, ndim)``, in any unit; 0 where it is the same along an axis.
    """
    extents, steps = [shapes[:, -1]], [[s[:, -1]] for s in strides]
    for axis in range(shapes.shape[1] - 2, -1, -1):
        outer, inner = shapes[:, axis], extents[-1]
        fits = np.ones(len(shapes), np.bool_)
        for s, of_operand in zip(strides, steps, strict=True):
            fits &= s[:, axis] == of_operand[-1] * inner
        if (fits | (outer <= 1) | (inner <= 1)).all():
            extents[-1] = outer * inner
            for s, of_operand in zip(strides, steps, strict=True):
                of_operand[-1] = np.where(inner <= 1, s[:, axis], of_operand[-1])
        else:
            extents.append(outer)
            for s, of_operand in zip(strides, steps, strict=True):
                of_operand.append(s[:, axis])
    return Merged(
        np.stack(extents[::-1], axis=1),
        [np.stack(of_operand[::-1], axis=1) for of_operand in steps],
    )
