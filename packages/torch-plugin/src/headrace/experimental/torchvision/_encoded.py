"""JPEG images that Pillow has opened and not yet decoded: only the window that is wanted is.

The pixels are Pillow's, bit by bit: both decode with libjpeg-turbo.
"""

from __future__ import annotations

import io
from typing import Any, NamedTuple

import numpy as np
import PIL.Image
from PIL.JpegImagePlugin import JpegImageFile

from headrace.errors import BadSampleError
from headrace.experimental.torchvision._planes import RGB
from headrace.experimental.torchvision._resize import Window
from headrace.kernels.cpu.decode import header, jpeg_scan, pixels
from headrace.kernels.cpu.decode.image_header import U8, ImageHeader

_COLOURS = {"RGB": "RGB", "L": "GRAY"}
_END = b"\xff\xd9"
_TAIL_BYTES = 64


class Encoded(NamedTuple):
    """A whole JPEG file."""

    data: np.ndarray
    header: ImageHeader
    format: pixels.PixelFormat

    def decode(self, window: Window) -> np.ndarray | None:
        """Pixels HWC of a window; None where Pillow is to say what is wrong."""
        top, left, height, width = window
        region = top, left, top + height, left + width
        try:
            return pixels.decode(self.data, self.header, self.format, region, np.empty, np.empty)
        except BadSampleError:
            return None


class UndecodedImage(PIL.Image.Image):
    """The RGB image of a JPEG file, which is decoded when Pillow first asks for its pixels."""

    encoded: Encoded | None = None

    @classmethod
    def of(cls, data: np.ndarray, found: ImageHeader) -> UndecodedImage:
        """Begin with the bytes of a file."""
        image = cls()
        image._mode, image._size = "RGB", (found.width, found.height)
        image.encoded = _encoded(data, found, "RGB")
        return image

    def load(self) -> Any:
        """Decode by Pillow."""
        if self.encoded is not None:
            image: Any = PIL.Image.open(io.BytesIO(self.encoded.data.tobytes()))
            image.load()
            self.encoded, self._im, self._info = None, image._im, image.info
        return super().load()

    @property
    def info(self) -> Any:
        """Entries of the file besides pixels."""
        self.load()
        return self._info

    @info.setter
    def info(self, info: dict[Any, Any]) -> None:
        self._info = info


def _encoded(data: np.ndarray, found: ImageHeader, mode: str) -> Encoded:
    wanted = pixels.PixelFormat(_COLOURS[mode], U8, adjust_orientation=False)
    return Encoded(data, found, wanted)


def encoded(image: Any) -> Encoded | None:
    """The file of an image, if it is not decoded yet and is complete."""
    if type(image) is UndecodedImage:
        return image.encoded
    if type(image) is not JpegImageFile or not image.tile or image.decoderconfig:
        return None
    data = _bytes_of(image)
    if _END not in data[-_TAIL_BYTES:]:
        return None
    try:
        found = header.read_header(memoryview(data))
    except BadSampleError:
        return None
    if (found.width, found.height) != image.size or found.variant == "cmyk" or found.unsupported:
        return None
    return _encoded(np.frombuffer(data, np.uint8), found, image.mode)


def _bytes_of(image: Any) -> bytes:
    """All bytes of the file, which is left as it was, or closed if the image opened it."""
    file = image.fp
    if isinstance(file, io.BytesIO):
        return file.getvalue()
    at = file.tell()
    file.seek(0)
    data: bytes = file.read()
    if image._exclusive_fp:
        file.close()
        image.fp = file = io.BytesIO(data)
    file.seek(at)
    return data


def open_rgb(path: Any) -> Any:
    """Open an image as torchvision's `default_loader`; a JPEG in colours is not decoded yet."""
    data = np.fromfile(path, np.uint8)
    found = jpeg_scan.plain_header(data)
    if found is not None and found.channels == RGB:
        return UndecodedImage.of(data, found)
    image = PIL.Image.open(io.BytesIO(data.tobytes()))
    return image if type(image) is JpegImageFile and image.mode == "RGB" else image.convert("RGB")
