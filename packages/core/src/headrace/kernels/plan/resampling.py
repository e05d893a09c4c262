"""Length and spacing of resampled audio, for several signals."""

from __future__ import annotations

import numpy as np

from headrace.kernels.plan.compiled import compiled


@compiled
def resampled_shapes(shapes: np.ndarray, rates: np.ndarray, most: int, steps: np.ndarray) -> int:
    """Make the shapes of signals those of the resampled ones.

    `shapes`: int64 ``(samples, ndim)``, changed in the first column. `rates`: those of the signals
    and of the resampled ones, float32 ``(samples, 2)``. `steps`: what to fill, float64
    ``(samples,)``: how many inputs one output is.
    """
    for i in range(len(shapes)):
        of, to = np.float64(rates[i, 0]), np.float64(rates[i, 1])
        exact = shapes[i, 0] * to / of
        if not (0 < of < np.inf and 0 <= to < np.inf and exact < most):
            return i
        shapes[i, 0] = np.int64(np.ceil(exact))
        steps[i] = of / to if to > 0 else 1.0
    return -1
