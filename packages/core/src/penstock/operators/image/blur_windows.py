"""Windows of `gaussian_blur`: what `sigma` and `window_size` say, of one sample or of a batch."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from penstock.errors import ArgumentValueError
from penstock.operators.vector_arguments import vectors
from penstock.tensors.gpu.batch import plain

if TYPE_CHECKING:
    from penstock.operators.operator import BatchContext

_HUGE = 1e9
"""Standard deviations whose windows nobody could hold: left to `resolved` and what it raises."""


def resolved(
    sigma: Sequence[float], window_size: Sequence[float], count: int
) -> list[tuple[float, int]]:
    """Standard deviation and number of weights for each of `count` axes.

    Raises
    ------
    ArgumentValueError
        If the values are not allowed.
    """
    sigmas = _for_each_axis("sigma", sigma, count)
    sizes = _for_each_axis("window_size", window_size, count)
    return [_resolved(s, size) for s, size in zip(sigmas, sizes, strict=True)]


def resolved_of_batch(c: BatchContext, count: int) -> tuple[np.ndarray, np.ndarray]:
    """`resolved` of all samples: float64 and int64 ``(samples, count)``.

    There is one row if both arguments are constants.

    Raises
    ------
    ArgumentValueError
        If the values of a sample are not allowed; says which sample.
    """
    from penstock.kernels.gpu.blur_windows import resolve_windows

    sigmas = vectors(c, "sigma", count, repeat=True, spread=False)
    sizes = vectors(c, "window_size", count, np.int64, repeat=True, spread=False)
    if sigmas is None or sizes is None:
        return _resolved_of_each(c, count)
    shape = max(len(sigmas), len(sizes)), count
    found = np.empty(shape, np.float64), np.empty(shape, np.int64)
    if not resolve_windows(plain(sigmas), plain(sizes), _HUGE, *found):
        return _resolved_of_each(c, count)
    return found


def _resolved_of_each(c: BatchContext, count: int) -> tuple[np.ndarray, np.ndarray]:
    found = []
    for index, given in enumerate(zip(c.values("sigma"), c.values("window_size"), strict=True)):
        try:
            found.append(resolved(*given, count))
        except ValueError as error:
            raise c.located(error, index) from error
    return (
        np.array([[sigma for sigma, _ in sample] for sample in found], np.float64),
        np.array([[size for _, size in sample] for sample in found], np.int64),
    )


def _for_each_axis(name: str, values: Sequence[float], count: int) -> Sequence[float]:
    if len(values) == 1:
        return (values[0],) * count
    if len(values) != count:
        raise ArgumentValueError(
            f"`{name}` has {len(values)} values, {tuple(values)}; expected one, or one for each of "
            f"the {count} axes."
        )
    return values


def _resolved(sigma: float, size: float) -> tuple[float, int]:
    if not 0 <= sigma < math.inf:
        raise ArgumentValueError(f"`sigma` must be a finite number of at least 0, got {sigma}.")
    size = int(size)
    if size < 0 or (size and size % 2 == 0):
        raise ArgumentValueError(
            f"`window_size` must be odd, or 0 to derive it from `sigma`, got {size}."
        )
    if size == 0:
        if sigma == 0:
            raise ArgumentValueError("`sigma` and `window_size` are both 0; give at least one.")
        # In float32, like DALI: 3 * float32(1 / 3) must not exceed 1.
        size = 2 * math.ceil(np.float32(3) * np.float32(sigma)) + 1
    elif sigma == 0:
        sigma = 0.3 * (size // 2 - 1) + 0.8
    return float(sigma), size
