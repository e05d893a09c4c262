"""Output sizes and source regions for whole batches: `resize_geometry`, all samples at once.

The numbers are those of the functions for one sample, to the last bit.
"""

from __future__ import annotations

import numpy as np

from penstock.operators.image.resize_geometry import (
    MAX_EXTENT,
    MODES,
    SMALLEST_OUTPUT,
    SMALLEST_REGION,
)

_NOTHING = np.empty((0, 0), np.float64)
_ANY = np.zeros(1, np.int64)


class OneByOneError(Exception):
    """The samples of a batch have to be looked at one by one: some need it, or are bad."""


def batch_geometry(
    in_size: np.ndarray,
    size: np.ndarray,
    mode: str = "default",
    max_size: tuple[float, ...] | None = None,
    roi: tuple[np.ndarray, np.ndarray] | None = None,
    subpixel_scale: bool = True,
    filters: tuple[np.ndarray, np.ndarray] | None = None,
) -> np.ndarray:
    """How the axes of all samples are resampled, all pixels of them.

    Parameters
    ----------
    in_size
        Extents in pixels, int64 ``(axes, samples)``, outermost axis first.
    size, roi
        As of `resize_geometry`, float64 ``(axes, samples)``.
    mode, max_size, subpixel_scale
        As of `resize_geometry`.
    filters
        For axes that shrink, and for others, int64 ``(samples,)``.

    Returns
    -------
    numpy.ndarray
        `AXIS` ``(axes, samples)``.

    Raises
    ------
    OneByOneError
        If a number is not finite, or an output too large: `resize_geometry` says which.

    Notes
    -----
    What all samples have in common may have one column instead of one a sample. If everything has,
    there is one column of axes.
    """
    from penstock.kernels.gpu.resample_axes import AXIS
    from penstock.kernels.gpu.resize_axes import resize_axes

    starts, ends = (_NOTHING, _NOTHING) if roi is None else roi
    shrinking, enlarging = (_ANY, _ANY) if filters is None else filters
    count = max(in_size.shape[1], size.shape[1], starts.shape[1], ends.shape[1])
    count = max(count, len(shrinking), len(enlarging))
    if not in_size.shape[1]:
        count = 0
    limits = np.zeros(len(in_size))
    if max_size is not None:
        limits[:] = max_size
    axes = np.empty((len(in_size), count), AXIS)
    good = resize_axes(
        axes,
        in_size,
        size,
        MODES.index(mode),
        limits,
        starts,
        ends,
        subpixel_scale,
        shrinking,
        enlarging,
        MAX_EXTENT,
        SMALLEST_OUTPUT,
        SMALLEST_REGION,
    )
    if not good:
        raise OneByOneError
    return axes
