"""From what a user asks of `resize` to an output size and the region of the source it shows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from struct import Struct
from typing import NamedTuple

from penstock.errors import ArgumentValueError

MODES = ("default", "stretch", "not_larger", "not_smaller")

SMALLEST_REGION = 1e-3
SMALLEST_OUTPUT = 0.1
MAX_EXTENT = 1 << 30
_float32 = Struct("f")


class AxisGeometry(NamedTuple):
    """What becomes of one axis."""

    in_size: int
    out_size: int
    start: float
    """Where the output begins in the source, in pixels from its edge; a float32 value."""
    end: float
    """Where it ends; before `start` where the axis is flipped."""


def single(value: float) -> float:
    """The nearest float32: what DALI computes with, and halves of pixels depend on it."""
    return float(_float32.unpack(_float32.pack(value))[0])


@lru_cache(maxsize=1024)
def resize_geometry(
    in_size: tuple[int, ...],
    size: tuple[float, ...],
    mode: str = "default",
    max_size: tuple[float, ...] | None = None,
    roi: tuple[tuple[float, ...], tuple[float, ...]] | None = None,
    subpixel_scale: bool = True,
) -> tuple[AxisGeometry, ...]:
    """Output size and source region of every axis.

    Parameters
    ----------
    in_size
        Extents of the image in pixels.
    size
        Wanted extents, one an axis; 0 for an axis that follows from the others, negative to flip.
    mode
        One of `MODES`; see `resize`.
    max_size
        Largest extents; 0 for an axis without a limit.
    roi
        Start and end of the region of the source, in pixels from its edges. It may leave the
        image; an axis whose end is smaller than its start is flipped.
    subpixel_scale
        Whether the region is stretched about its centre by as much as rounding the output size to
        whole pixels stretches the output, so that the scale stays what was asked for.

    Raises
    ------
    ArgumentValueError
        If a number is not finite or an output extent exceeds 2**30.
    """
    # Adding 0 drops the sign of a negative zero, which would flip an axis in some modes.
    size = tuple([_finite(s, "the requested size") + 0.0 for s in size])
    if roi is None:
        low, high = [0.0] * len(size), [float(s) for s in in_size]
    else:
        starts = [_finite(s, "`roi_start`") for s in roi[0]]
        ends = [_finite(s, "`roi_end`") for s in roi[1]]
        # A flipped region counts as a negative size, so that the two together cancel.
        size = tuple([-q if a > b else q for q, a, b in zip(size, starts, ends, strict=True)])
        low = list(map(min, starts, ends))
        high = list(map(max, starts, ends))
        for i, (a, b) in enumerate(zip(low, high, strict=True)):
            if b - a < SMALLEST_REGION:
                middle = 0.5 * (a + b)
                low[i] = single(middle - 0.5 * SMALLEST_REGION)
                high[i] = single(middle + 0.5 * SMALLEST_REGION)
    extents = [single(b - a) for a, b in zip(low, high, strict=True)]
    wanted = _output_extents(size, extents, mode, max_size)
    axes = []
    for length, target, start, end in zip(in_size, wanted, low, high, strict=True):
        target = single(target)
        exact = abs(target)
        if exact > MAX_EXTENT:
            raise ArgumentValueError(
                f"An output extent would be {exact:g} pixels. Check the size arguments and the "
                "region, or set `max_size`."
            )
        out = max(1, math.floor(exact + 0.5))
        if target < 0:
            start, end = end, start
        if subpixel_scale and exact != out:
            centre = 0.5 * (start + end)
            stretch = out / max(exact, SMALLEST_OUTPUT)
            start = single(centre + (start - centre) * stretch)
            end = single(centre + (end - centre) * stretch)
        axes.append(AxisGeometry(length, out if length else 0, start, end))
    return tuple(axes)


def _output_extents(
    size: Sequence[float],
    extents: Sequence[float],
    mode: str,
    max_size: tuple[float, ...] | None,
) -> list[float]:
    """Unrounded output extents; negative ones are flipped."""
    limits = [_finite(m, "`max_size`") for m in max_size] if max_size else [0.0] * len(size)
    given = [q != 0 and e != 0 for q, e in zip(size, extents, strict=True)]
    if not any(given):
        return list(extents)
    scales = [single(abs(q) / e) for q, e, g in zip(size, extents, given, strict=True) if g]
    if mode in ("default", "stretch"):
        missing = 1.0
        if mode == "default":
            missing = scales[0]
            if len(scales) > 1:
                missing = single(math.prod(scales) ** (1 / len(scales)))
        wanted = [q if g else e * missing for q, e, g in zip(size, extents, given, strict=True)]
        return [
            math.copysign(min(abs(w), m), w) if m > 0 else w
            for w, m in zip(wanted, limits, strict=True)
        ]
    scale = min(scales) if mode == "not_larger" else max(scales)
    for limit, extent in zip(limits, extents, strict=True):
        if limit > 0 and extent > 0:
            scale = min(scale, single(limit / extent))
    # An axis that decides the scale keeps its size exactly: no rounding there and back.
    return [
        q if g and single(abs(q) / e) == scale else math.copysign(e * scale, q)
        for q, e, g in zip(size, extents, given, strict=True)
    ]


def _finite(value: float, what: str) -> float:
    rounded = single(value)
    if not math.isfinite(rounded):
        raise ArgumentValueError(f"{what} must be a finite number of pixels, got {value}.")
    return rounded
