"""Pixels that are not there yet: what a fused operator hands to its only consumer.

A decoder followed by a crop need not decode what the crop throws away; a resize followed by a
crop need not compute it. Where the graph allows it (`penstock.graph.fuse`), the producer hands
over a recipe, and the consumer asks for just the region it reads. The result is bit-identical to
doing one operator after the other.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from penstock.kernels.cpu.flip import flip_into


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


class DeferredWindow:
    """A window of an image that is not computed yet: a crop that passes requests on, shifted."""

    __slots__ = ("_image", "_x", "_y", "dtype", "shape")

    def __init__(self, image: DeferredImage, y: int, x: int, height: int, width: int) -> None:
        self._image = image
        self._y = y
        self._x = x
        self.shape = (height, width, image.shape[2])
        self.dtype = image.dtype

    def region(self, y0: int, x0: int, y1: int, x1: int) -> np.ndarray:
        """Pixels of the window, in its own coordinates."""
        y, x = self._y, self._x
        return self._image.region(y + y0, x + x0, y + y1, x + x1)


class DeferredMirror:
    """The mirror image of an image that is not computed yet."""

    __slots__ = ("_columns", "_image", "_rows", "dtype", "shape")

    def __init__(self, image: DeferredImage, *, rows: bool, columns: bool) -> None:
        self._image = image
        self._rows = rows
        self._columns = columns
        self.shape = image.shape
        self.dtype = image.dtype

    def region(self, y0: int, x0: int, y1: int, x1: int) -> np.ndarray:
        """Pixels of the mirror image, in its own coordinates."""
        height, width, _ = self.shape
        if self._rows:
            y0, y1 = height - y1, height - y0
        if self._columns:
            x0, x1 = width - x1, width - x0
        found = self._image.region(y0, x0, y1, x1)
        if not self._columns:
            return found[::-1] if self._rows else found
        mirrored = np.empty(found.shape, found.dtype)
        flip_into(found, (0, 1) if self._rows else (1,), mirrored)
        return mirrored
