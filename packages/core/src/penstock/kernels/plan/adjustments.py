"""Numbers of brightness and contrast, for several samples."""

from __future__ import annotations

import numpy as np

from penstock.kernels.plan.compiled import compiled

_ZERO, _ONE = np.float32(0), np.float32(1)


@compiled
def scales_and_offsets(
    brightness: np.ndarray,
    shift: np.ndarray,
    contrast: np.ndarray,
    center: np.ndarray,
    shift_unit: float,
    keeps: bool,
    scales: np.ndarray,
    offsets: np.ndarray,
    unchanged: np.ndarray,
) -> None:
    """What elements are multiplied with, and what is added then.

    Parameters
    ----------
    brightness, shift, contrast, center
        Arguments of the operators, float32, one a sample or one for all.
    shift_unit
        The unit of `shift`.
    keeps
        Whether a sample without adjustment is to stay what it is, to the last bit.
    scales, offsets
        What to fill, float32 ``(samples,)``.
    unchanged
        Likewise, bool: whether samples stay what they are.
    """
    for i in range(len(scales)):
        by = brightness[i if len(brightness) > 1 else 0]
        added = shift[i if len(shift) > 1 else 0]
        factor = contrast[i if len(contrast) > 1 else 0]
        middle = center[i if len(center) > 1 else 0]
        # One product and one sum for each element, as DALI does it: rounding follows.
        scales[i] = by * factor
        in_units = np.float32(np.float64(added) * shift_unit)
        offsets[i] = in_units + by * (middle - factor * middle)
        unchanged[i] = keeps and by == _ONE and factor == _ONE and added == _ZERO
        if unchanged[i]:
            # A negative zero, as a sum with it changes no number; one with 0 changes that of -0.
            offsets[i] = -_ZERO
