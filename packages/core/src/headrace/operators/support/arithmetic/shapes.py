"""Errors about shapes that do not broadcast, in the words of both devices."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.errors import ShapeError


def not_broadcastable(shapes: Sequence[tuple[int, ...]]) -> ShapeError:
    """The error for operands of these shapes."""
    return ShapeError(
        "Can't broadcast shapes of the operands to one: "
        f"{', '.join(map(str, shapes))}. Aligned at the last axis, extents must be equal or 1."
    )
