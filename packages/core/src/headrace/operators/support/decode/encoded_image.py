"""An image whose pixels are decoded when its consumer asks for them."""

from __future__ import annotations

import numpy as np

from headrace.kernels.cpu.decode.diagnosis import has_end_of_image
from headrace.kernels.cpu.decode.image_header import ImageHeader
from headrace.kernels.cpu.decode.pixels import PixelFormat, decode
from headrace.kernels.cpu.decode.stored import Region
from headrace.operators.support.lazy_image import Allocator, LazyImage, PlainSource
from headrace.operators.support.operator import SampleContext


class EncodedImage(LazyImage):
    """A `LazyImage` that decodes just the region that is asked for.

    Its shape is known from the header. The pixels decoded last are kept, so that asking for them
    again costs nothing; asking for others decodes the whole image, once. Where the data must be
    complete, as it must for a whole image, a JPEG file without an end is decoded as a whole, which
    says what is wrong with it.
    """

    __slots__ = (
        "_context",
        "_data",
        "_header",
        "_known",
        "_must_be_complete",
        "_pixels",
        "_wanted",
    )

    def __init__(
        self,
        context: SampleContext,
        data: np.ndarray,
        header: ImageHeader,
        wanted: PixelFormat,
        *,
        must_be_complete: bool = False,
    ) -> None:
        self._context = context
        self._data = data
        self._header = header
        self._wanted = wanted
        self._known: Region = (0, 0, 0, 0)
        self._pixels: np.ndarray | None = None
        self._must_be_complete = must_be_complete
        self.shape = wanted.shape(header)
        self.dtype = wanted.dtype

    def region(
        self, y0: int, x0: int, y1: int, x1: int, empty: Allocator | None = None
    ) -> np.ndarray:
        """Pixels of rows ``y0 <= y < y1`` and columns ``x0 <= x < x1``."""
        height, width, channels = self.shape
        temp = self._context.temp
        if y0 >= y1 or x0 >= x1:
            return temp((max(y1 - y0, 0), max(x1 - x0, 0), channels), self.dtype)
        top, left, bottom, right = self._known
        if self._pixels is None:
            wanted_now: Region = (y0, x0, y1, x1)
            if wanted_now != (0, 0, height, width) and self._is_cut_off():
                wanted_now = (0, 0, height, width)
        elif top <= y0 and left <= x0 and y1 <= bottom and x1 <= right:
            return self._pixels[y0 - top : y1 - top, x0 - left : x1 - left]
        else:
            wanted_now = (0, 0, height, width)
        try:
            self._pixels = decode(
                self._data, self._header, self._wanted, wanted_now, empty or temp, temp
            )
        except Exception as error:
            # The consumer asks; it is the decoder that failed.
            raise self._context.located(error) from error
        self._known = top, left, _, _ = wanted_now
        if wanted_now == (y0, x0, y1, x1):
            return self._pixels  # not a view of it: it may be the sample's place in its batch
        return self._pixels[y0 - top : y1 - top, x0 - left : x1 - left]

    def plain_source(self) -> PlainSource | None:
        """The file, if it is a JPEG whose pixels are wanted as they are stored."""
        header, wanted = self._header, self._wanted
        if self._pixels is not None or not wanted.is_as_stored(header):
            return None
        color = wanted.stored_color(header.channels)
        height, width = header.height, header.width
        complete = self._must_be_complete
        return PlainSource(self._data, color, wanted.fast_idct, height, width, 0, 0, complete)

    def _is_cut_off(self) -> bool:
        """True if the file has no end marker, an error even where the wanted part is complete."""
        return (
            self._must_be_complete
            and self._header.codec == "jpeg"
            and not has_end_of_image(self._data.data)
        )
