"""Copies of many pieces of memory in one call."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.core import cgutils, types
from numba.extending import intrinsic

from headrace.kernels.compilation import njit


@intrinsic  # type: ignore[misc]
def copy_bytes(typing: Any, target: Any, source: Any, size: Any) -> Any:
    """Copy bytes from one address to another."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        to, origin = [builder.inttoptr(each, cgutils.voidptr_t) for each in args[:2]]
        cgutils.raw_memcpy(builder, to, origin, args[2], 1)
        return context.get_dummy_value()

    return types.void(types.uint64, types.uint64, types.int64), generate


@njit(nogil=True)
def copy_pieces(sources: np.ndarray, targets: np.ndarray, sizes: np.ndarray) -> None:
    """Copy ``sizes[k]`` bytes from address ``sources[k]`` to ``targets[k]``; none overlap.

    Addresses are uint64, sizes int64.
    """
    for k in range(len(sizes)):
        copy_bytes(targets[k], sources[k], sizes[k])


@njit(nogil=True)
def copy_elements(
    sources: np.ndarray,
    targets: np.ndarray,
    steps: np.ndarray,
    begins: np.ndarray,
    counts: np.ndarray,
    taken: np.ndarray,
) -> None:
    """Fill samples at `targets` with chosen elements of those at `sources`, of ``steps[k]`` bytes.

    Sample `k` has the elements ``taken[begins[k] : begins[k] + counts[k]]``. Addresses are uint64,
    all else int64.
    """
    for k in range(len(targets)):
        step = np.uint64(steps[k])
        for j in range(counts[k]):
            source = sources[k] + np.uint64(taken[begins[k] + j]) * step
            copy_bytes(targets[k] + np.uint64(j) * step, source, steps[k])
