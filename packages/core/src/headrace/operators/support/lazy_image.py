"""Images whose pixels are computed on demand: what a fused operator hands to its only consumer.

A decoder followed by a crop need not decode what the crop throws away; a resize followed by a
crop need not compute it. Where the graph allows it, the producer returns a lazy image, and the
consumer asks for just the region that it reads. The result is bit-identical to doing one operator
after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from headrace.kernels.cpu.flip import flip_into
from headrace.operators.support.lazy_value import LazyValue

if TYPE_CHECKING:
    from headrace.operators.support.operator import SampleContext

Allocator = Callable[[tuple[int, ...], Any], np.ndarray]


class PlainSource(NamedTuple):
    """Source of uint8 pixels that a compiled loop can read."""

    data: np.ndarray
    """A JPEG file; or the pixels themselves, HWC and contiguous."""
    color: str
    """Colours the file is decoded to, ``"RGB"``, ``"BGR"`` or ``"GRAY"``; empty for pixels."""
    fast_idct: bool
    height: int
    """Of all pixels, ..."""
    width: int
    top: int
    """... and the first of those that are meant."""
    left: int
    must_be_complete: bool
    """True if a file without an end is an error, also where the end is not needed."""


class LazyPixels(LazyValue):
    """An image, or a sequence of images, whose pixels are computed on demand.

    `shape`: that of the whole, channels last. `dtype`: element type.
    """

    __slots__ = ("dtype", "shape")

    shape: tuple[int, ...]
    dtype: np.dtype

    def cut(self, anchor: Sequence[int], shape: Sequence[int]) -> LazyPixels:
        """A window, which lies inside and has all channels."""
        raise NotImplementedError

    def pixels(self, empty: Allocator | None = None) -> np.ndarray:
        """All pixels.

        The array may be a view and must not be written to. `empty` gives memory for what is
        computed; without it, scratch memory is taken.
        """
        raise NotImplementedError

    def materialise(self, c: SampleContext) -> np.ndarray:
        """All pixels, in the place of the output wherever possible."""
        return self.pixels(c.empty)


class LazyImage(LazyPixels):
    """An HWC image whose pixels are computed on demand, a region at a time."""

    __slots__ = ()

    layout: ClassVar[str] = "HWC"
    shape: tuple[int, int, int]

    def region(
        self, y0: int, x0: int, y1: int, x1: int, empty: Allocator | None = None
    ) -> np.ndarray:
        """Pixels of rows ``y0 <= y < y1`` and columns ``x0 <= x < x1``, bounds inside the image;
        as `pixels` gives them.
        """
        raise NotImplementedError

    def plain_source(self) -> PlainSource | None:
        """Source of the pixels, if a compiled loop can read it."""
        return None

    def cut(self, anchor: Sequence[int], shape: Sequence[int]) -> LazyImage:
        """A window, which lies inside and has all channels."""
        return LazyWindow(self, anchor[0], anchor[1], shape[0], shape[1])

    def pixels(self, empty: Allocator | None = None) -> np.ndarray:
        """All pixels."""
        height, width, _ = self.shape
        return self.region(0, 0, height, width, empty)


class LazyWindow(LazyImage):
    """A window of an image that is not computed yet: a crop that passes requests on, shifted."""

    __slots__ = ("_image", "_x", "_y")

    def __init__(self, image: LazyImage, y: int, x: int, height: int, width: int) -> None:
        self._image = image
        self._y = y
        self._x = x
        self.shape = (height, width, image.shape[2])
        self.dtype = image.dtype

    def region(
        self, y0: int, x0: int, y1: int, x1: int, empty: Allocator | None = None
    ) -> np.ndarray:
        """Pixels of the window, in its own coordinates."""
        y, x = self._y, self._x
        return self._image.region(y + y0, x + x0, y + y1, x + x1, empty)

    def plain_source(self) -> PlainSource | None:
        """That of the image, from another place on."""
        found = self._image.plain_source()
        if found is None:
            return None
        return found._replace(top=found.top + self._y, left=found.left + self._x)


class LazyMirror(LazyImage):
    """The mirror image of an image that is not computed yet."""

    __slots__ = ("_columns", "_image", "_rows")

    def __init__(self, image: LazyImage, *, rows: bool, columns: bool) -> None:
        self._image = image
        self._rows = rows
        self._columns = columns
        self.shape = image.shape
        self.dtype = image.dtype

    def region(
        self, y0: int, x0: int, y1: int, x1: int, empty: Allocator | None = None
    ) -> np.ndarray:
        """Pixels of the mirror image, in its own coordinates."""
        height, width, _ = self.shape
        if self._rows:
            y0, y1 = height - y1, height - y0
        if self._columns:
            x0, x1 = width - x1, width - x0
        if not self._columns:
            found = self._image.region(y0, x0, y1, x1, empty)
            return found[::-1] if self._rows else found
        found = self._image.region(y0, x0, y1, x1)
        mirrored = (empty or np.empty)(found.shape, found.dtype)
        flip_into(found, (0, 1) if self._rows else (1,), mirrored)
        return mirrored
