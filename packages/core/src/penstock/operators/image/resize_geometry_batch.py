"""Output sizes and source regions for whole batches: `resize_geometry`, vectorised.

The numbers are those of the functions for one sample, to the last bit. Arrays are ``(axes,
samples)``, outermost axis first.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from penstock.operators.image.resize_geometry import (
    MAX_EXTENT,
    SMALLEST_OUTPUT,
    SMALLEST_REGION,
)


class OneByOneError(Exception):
    """The samples of a batch have to be looked at one by one: some need it, or are bad."""


class BatchGeometry(NamedTuple):
    """What becomes of the axes of a batch; see `AxisGeometry`."""

    in_size: np.ndarray
    """int64."""
    out_size: np.ndarray
    """int64."""
    start: np.ndarray
    """float64."""
    end: np.ndarray
    """float64."""


def singles(values: np.ndarray) -> np.ndarray:
    """The nearest float32 numbers, as float64."""
    with np.errstate(over="ignore"):
        return values.astype(np.float32).astype(np.float64)


def batch_geometry(
    in_size: np.ndarray,
    size: np.ndarray,
    mode: str = "default",
    max_size: tuple[float, ...] | None = None,
    roi: tuple[np.ndarray, np.ndarray] | None = None,
    subpixel_scale: bool = True,
) -> BatchGeometry:
    """Output size and source region of every axis; arguments as of `resize_geometry`.

    Raises
    ------
    OneByOneError
        If a number is not finite, or an output too large: `resize_geometry` says which.
    """
    size = _finite(size) + 0.0
    if roi is None:
        low, high = np.zeros(in_size.shape), in_size.astype(np.float64)
    else:
        starts, ends = _finite(roi[0]), _finite(roi[1])
        size = np.where(starts > ends, -size, size)
        low, high = np.minimum(starts, ends), np.maximum(starts, ends)
        thin = high - low < SMALLEST_REGION
        if thin.any():
            middle = 0.5 * (low + high)
            low = np.where(thin, singles(middle - 0.5 * SMALLEST_REGION), low)
            high = np.where(thin, singles(middle + 0.5 * SMALLEST_REGION), high)
    wanted = singles(_output_extents(size, singles(high - low), mode, max_size))
    exact = np.abs(wanted)
    if not (exact <= MAX_EXTENT).all():
        raise OneByOneError
    out = np.maximum(np.floor(exact + 0.5), 1.0)
    flipped = wanted < 0
    start, end = low, high
    if flipped.any():
        start, end = np.where(flipped, high, low), np.where(flipped, low, high)
    if subpixel_scale:
        rounded = exact != out
        if rounded.any():
            centre = 0.5 * (start + end)
            stretch = out / np.maximum(exact, SMALLEST_OUTPUT)
            start = np.where(rounded, singles(centre + (start - centre) * stretch), start)
            end = np.where(rounded, singles(centre + (end - centre) * stretch), end)
    return BatchGeometry(in_size, np.where(in_size > 0, out, 0.0).astype(np.int64), start, end)


def _output_extents(
    size: np.ndarray, extents: np.ndarray, mode: str, max_size: tuple[float, ...] | None
) -> np.ndarray:
    """Unrounded output extents; negative ones are flipped."""
    given = (size != 0) & (extents != 0)
    all_given = bool(given.all())
    if all_given and max_size is None and mode in ("default", "stretch"):
        return size
    scales = singles(np.abs(size) / np.where(given, extents, 1.0))
    limits = None if max_size is None else _finite(np.array(max_size, np.float64))[:, np.newaxis]
    if mode in ("default", "stretch"):
        wanted = size
        if not all_given:
            missing = _mean_scales(scales, given) if mode == "default" else 1.0
            wanted = np.where(given, size, extents * missing)
        if limits is not None:
            capped = np.copysign(np.minimum(np.abs(wanted), limits), wanted)
            wanted = np.where(limits > 0, capped, wanted)
    else:
        if mode == "not_larger":
            scale = np.where(given, scales, np.inf).min(axis=0)
        else:
            scale = np.where(given, scales, -np.inf).max(axis=0)
        if limits is not None:
            limited = (limits > 0) & (extents > 0)
            most = singles(limits / np.where(limited, extents, 1.0))
            scale = np.minimum(scale, np.where(limited, most, np.inf).min(axis=0))
        scale = np.where(np.isfinite(scale), scale, 0.0)
        decides = given & (scales == scale)
        wanted = np.where(decides, size, np.copysign(extents * scale, size))
    # What no size is given for keeps its extents.
    return np.where(given.any(axis=0), wanted, extents)


def _mean_scales(scales: np.ndarray, given: np.ndarray) -> np.ndarray:
    """The geometric mean of the scales of the axes that have one."""
    count = given.sum(axis=0)
    means = np.where(given, scales, 0.0).sum(axis=0)
    for i in np.flatnonzero(count > 1):
        # Python's power: NumPy's may differ in the last bit.
        known = scales[given[:, i], i].tolist()
        means[i] = math.prod(known) ** (1 / len(known))
    return singles(means)


def _finite(values: np.ndarray) -> np.ndarray:
    found = singles(values)
    if not np.isfinite(found).all():
        raise OneByOneError
    return found
