"""`decoders.image`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from penstock.kernels.cpu.decode.pixels import decode
from penstock.kernels.cpu.decode.stored import Region
from penstock.operators.image.decode_arguments import (
    CACHE_ARGS,
    DECODE_ARGS,
    DEVICES,
    ENCODED,
    OUTPUT_DOCS,
    ImageDecoder,
)
from penstock.operators.image.decode_deferred import EncodedImage, must_be_whole
from penstock.operators.operator import SampleContext, operator


@operator(
    "decoders.image",
    inputs=ENCODED,
    args=(*DECODE_ARGS, *CACHE_ARGS),
    output_docs=OUTPUT_DOCS,
    devices=DEVICES,
    defers=True,
)
class DecodeImage(ImageDecoder):
    """Decodes images: JPEG, PNG, TIFF, WebP, BMP, PNM (P1 to P6) and JPEG 2000.

    What a file is shows in its first bytes; its name does not matter. Of a file with several
    images the first one counts. A crop, slice or resize that alone reads the output makes the
    decoder skip what it does not need.

    Examples
    --------
    >>> encoded, labels = fn.readers.file(file_root="images")
    >>> images = fn.decoders.image(encoded)
    >>> masks = fn.decoders.image(encoded, output_type=types.GRAY)
    """

    def cpu(self, c: SampleContext, *inputs: np.ndarray) -> np.ndarray:
        data, header = self._open(inputs[0])
        return decode(data, header, self._wanted, None, c.empty, c.temp)

    def decode_part(
        self, c: SampleContext, encoded: np.ndarray, chosen: Callable[[tuple[int, ...]], Region]
    ) -> tuple[np.ndarray, tuple[int, int, int, int]]:
        """Decode what is `chosen` of an image of a shape, in place of all of it.

        Returns
        -------
        The pixels, and their place: first row and column, and the extents of the whole image.
        """
        data, header = self._open(encoded)
        shape = self._wanted.shape(header)
        y0, x0, y1, x1 = region = chosen(shape)
        if must_be_whole(data, header):
            pixels = decode(data, header, self._wanted, None, c.temp, c.temp)[y0:y1, x0:x1]
        else:
            pixels = decode(data, header, self._wanted, region, c.empty, c.temp)
        return pixels, (y0, x0, *shape[:2])

    def defer(self, c: SampleContext, *inputs: Any) -> EncodedImage:
        data, header = self._open(inputs[0])
        return EncodedImage(c, data, header, self._wanted, must_be_complete=True)
