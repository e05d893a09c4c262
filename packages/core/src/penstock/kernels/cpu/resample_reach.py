"""Which source pixels a resampled axis may need, without any weight being computed."""

from __future__ import annotations

import math

from numba import njit

_SPARE_PIXELS = 2.0


@njit(cache=True, error_model="numpy")
def reach_of_axis(
    in_size: int,
    out_size: int,
    start: float,
    end: float,
    radius: float,
    antialias: bool,
    begin: int,
    count: int,
    step: int,
) -> tuple[int, int]:
    """First source pixel, and end of those, that output pixels may be made of.

    They are at least those of `penstock.kernels.cpu.resample_taps.axis_taps`, and hardly more.

    Parameters
    ----------
    in_size, out_size, start, end, antialias
        As of `AxisSampling`.
    radius
        Of the filter, in source pixels, where it is not widened.
    begin, count, step
        The output pixels: at least one.
    """
    scale = (end - start) / out_size
    if antialias:
        radius = radius * max(1.0, abs(scale))
    one = start + (begin + 0.5) * scale
    other = start + (begin + step * (count - 1) + 0.5) * scale
    low, high = min(one, other), max(one, other)
    # Positions are rounded to single precision there.
    spare = _SPARE_PIXELS + 1e-6 * (abs(low) + abs(high) + abs(start))
    support = math.ceil(2.0 * radius + _SPARE_PIXELS)
    # Where positions leave the image, taps begin a support before its end, or at its beginning.
    first = min(math.floor(low - radius - spare), float(in_size - support))
    last = max(math.ceil(high + radius + spare), float(support))
    limit = float(in_size)
    return int(min(max(first, 0.0), limit)), int(min(max(last, 0.0), limit))
