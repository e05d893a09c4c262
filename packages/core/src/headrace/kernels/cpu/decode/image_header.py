"""Facts about an encoded image that are known before a pixel is decoded."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from headrace.kernels.cpu.decode.exif import turned

U8 = np.dtype(np.uint8)
U16 = np.dtype(np.uint16)
F32 = np.dtype(np.float32)


class ImageHeader(NamedTuple):
    """Facts about an encoded image."""

    codec: str
    """``"jpeg"``, ``"png"``, ``"tiff"``, ``"webp"``, ``"bmp"``, ``"pnm"``, ``"jpeg2000"``,
    ``"gif"``, ``"avif"`` or ``"heic"``."""
    height: int
    """Rows as stored, before `orientation` is applied."""
    width: int
    """Columns as stored."""
    channels: int
    """Channels that the pixels have without conversion; a palette counts as colours."""
    dtype: np.dtype | None
    """Type of a decoded sample; `None` for types that no decoder produces."""
    orientation: int = 1
    """EXIF orientation, 1 to 8."""
    variant: str = ""
    """Other facts that decoders need: of a JPEG ``"cmyk"`` (or YCCK), ``"rgb"`` (components that
    are no YCbCr) or ``"lossless"``; of a JPEG 2000 ``"special"`` unless it has 8 or 16 bits a
    sample, no subsampling, no palette or alpha, and the colour space sRGB or gray.
    """
    unsupported: str = ""
    """Kind of a file that no decoder takes, such as ``"a JPEG of 12 bits a sample"``, or ""."""

    sampling: str = ""
    """Of a baseline JPEG that is all in one scan, how densely chroma is sampled: ``"4:4:4"``,
    ``"4:2:2"``, ``"4:2:0"``, ``"4:4:0"`` or, if it has none, ``"gray"``; empty for any other image.
    """

    def size(self, adjust_orientation: bool) -> tuple[int, int]:
        """Height and width of the decoded image."""
        if adjust_orientation and turned(self.orientation):
            return self.width, self.height
        return self.height, self.width
