"""Requests for a warp: the maps of samples, and the windows wanted of the results."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from headrace.tensors.gpu.batch import DeviceBatch

if TYPE_CHECKING:
    from headrace.kernels.gpu.pointwise_terms import Term
    from headrace.kernels.gpu.warp_matrices import DeviceMatrices


@dataclass(frozen=True, slots=True)
class WarpWindows:
    """Windows wanted of warps; rows of one sample each, or one row for all.

    `canvas`: extents of the whole outputs, int64 ``(n, rank)``. `first`, `size`: the windows of
    them, int64 ``(n, rank)``. `mirrored`: which axes run backwards in the output, bool ``(n,
    rank)``.
    """

    canvas: np.ndarray
    first: np.ndarray
    size: np.ndarray
    mirrored: np.ndarray


@dataclass(frozen=True, slots=True)
class Warp:
    """Warp of samples: the arguments of `warp`, without memory for an output.

    `source`, `matrices`, `nearest`, `fill`: as of `headrace.kernels.gpu.warp.warp`. `dtype`:
    element type of the warp's output. `chain`: what becomes of elements, a term of source 0, or
    `None`. `numbers`: for each number of the term, an array of one value a sample.
    """

    source: DeviceBatch
    matrices: np.ndarray | DeviceMatrices
    dtype: np.dtype
    nearest: bool
    fill: float | None
    chain: Term | None = None
    numbers: tuple[np.ndarray, ...] = ()
