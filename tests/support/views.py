"""The same data in every memory order that kernels meet."""

from __future__ import annotations

import numpy as np

SHAPES = [(5,), (1,), (4, 5), (4, 5, 3), (1, 5, 3), (4, 1, 3), (4, 5, 1), (3, 4, 70)]
SHAPES += [(2, 4, 5, 3), (2, 3, 4, 5), (2, 3, 4, 5, 2), (0, 4, 3), (4, 0, 3), ()]


def views(shape: tuple[int, ...], dtype: str) -> list[np.ndarray]:
    """Dense data, a window, data whose axes lie in memory in reverse order, a mirrored window."""
    rng = np.random.default_rng(0)
    large = rng.integers(0, 2 if dtype == "bool" else 100, [s + 2 for s in shape]).astype(dtype)
    if not shape:
        return [large]
    window = large[(slice(1, -1),) * len(shape)]
    dense = np.ascontiguousarray(window)
    return [dense, window, np.ascontiguousarray(dense.T).T, window[::-1]]
