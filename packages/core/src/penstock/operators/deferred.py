"""Pixels that are not there yet: what a fused operator hands to its only consumer.

A decoder followed by a crop need not decode what the crop throws away; a resize followed by a
crop need not compute it. Where the graph allows it (`penstock.graph.fuse`), the producer hands
over a recipe, and the consumer asks for just the region it reads. The result is bit-identical to
doing one operator after the other.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np


class DeferredImage(Protocol):
    """An HWC image whose pixels are computed on demand, a region at a time."""

    shape: tuple[int, int, int]
    """Height, width and number of channels of the whole image."""
    dtype: np.dtype

    def region(self, y0: int, x0: int, y1: int, x1: int) -> np.ndarray:
        """Pixels of rows ``y0 <= y < y1`` and columns ``x0 <= x < x1``, bounds inside the image.

        The array may be a view and must not be written to.
        """
        ...


def pixels(image: np.ndarray | DeferredImage) -> np.ndarray:
    """All pixels of `image`, computed now if they are deferred."""
    if isinstance(image, np.ndarray):
        return image
    height, width, _ = image.shape
    return image.region(0, 0, height, width)
