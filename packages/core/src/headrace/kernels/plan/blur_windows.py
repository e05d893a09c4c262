"""Windows of Gaussian filters of all samples of a batch, worked out on the host."""

from __future__ import annotations

import math

import numpy as np

from headrace.kernels.plan.compiled import compiled

_THREE = np.float32(3)


@compiled
def resolve_windows(
    given_sigmas: np.ndarray,
    given_sizes: np.ndarray,
    too_large: float,
    sigmas: np.ndarray,
    sizes: np.ndarray,
) -> bool:
    """Standard deviations and sizes of windows, where one of the two may follow from the other.

    `given_sigmas`: standard deviations in elements, float64 ``(samples, axes)``, or ``(1, axes)``
    for all; 0 where it is not given. `given_sizes`: numbers of weights, int64, likewise. `sigmas`,
    `sizes`: what to fill, ``(samples, axes)``.
    """
    for i in range(len(sigmas)):
        for axis in range(sigmas.shape[1]):
            sigma = given_sigmas[i if len(given_sigmas) > 1 else 0, axis]
            size = given_sizes[i if len(given_sizes) > 1 else 0, axis]
            if not (sigma >= 0 and sigma < too_large) or size < 0:
                return False
            if size == 0:
                if sigma == 0:
                    return False
                # In float32, like DALI: 3 * float32(1 / 3) must not exceed 1.
                size = 2 * math.ceil(_THREE * np.float32(sigma)) + 1
            elif size % 2 == 0:
                return False
            elif sigma == 0:
                sigma = 0.3 * (size // 2 - 1) + 0.8
            sigmas[i, axis] = sigma
            sizes[i, axis] = size
    return True
