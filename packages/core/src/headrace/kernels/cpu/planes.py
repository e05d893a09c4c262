"""Parts of an image that OpenCV takes in one call."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

_MOST_CHANNELS = 4


def planes_of(
    image: np.ndarray, out: np.ndarray, *, planar: bool
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Contiguous parts of an image, and where in `out` they belong: one channel or up to four."""
    if not out.size:
        return
    if planar:
        parts = list(zip(image, out, strict=True))
    elif image.ndim == 2 or image.shape[2] <= _MOST_CHANNELS:
        parts = [(image, out)]
    else:
        parts = [(image[..., k], out[..., k]) for k in range(image.shape[2])]
    for part, target in parts:
        yield np.ascontiguousarray(part), target
