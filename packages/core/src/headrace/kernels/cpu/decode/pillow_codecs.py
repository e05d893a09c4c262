"""Decode with Pillow what no other library here knows: GIF, AVIF and HEIC.

Pillow, and for HEIC pillow-heif, are the extra `headrace[images]`.
"""

from __future__ import annotations

import io
import warnings
from functools import cache
from typing import Any

import numpy as np

from headrace._forking import no_fork
from headrace.errors import BadSampleError
from headrace.kernels.cpu.decode import convert
from headrace.kernels.cpu.decode.exif import UPRIGHT
from headrace.kernels.cpu.decode.image_header import U8, ImageHeader

_BRANDS = {b"avif": "avif", b"avis": "avif"} | dict.fromkeys(
    (b"heic", b"heix", b"hevc", b"hevx", b"heim", b"heis", b"mif1", b"msf1"), "heic"
)
NAMES = {"gif": "GIF", "avif": "AVIF", "heic": "HEIC"}
_ORIENTATION = 0x0112


def codec_of(start: bytes) -> str:
    """``"gif"``, ``"avif"`` or ``"heic"`` for data that begins with `start`, or an empty string."""
    if start[:4] == b"GIF8":
        return "gif"
    return _BRANDS.get(start[8:12], "") if start[4:8] == b"ftyp" else ""


def read(data: memoryview, codec: str) -> ImageHeader:
    """Header of the first image in `data`."""
    image = _open(data, codec)
    has_alpha = "A" in image.getbands() or "transparency" in image.info
    channels = 1 if image.mode in ("1", "L") and not has_alpha else 3 + has_alpha
    orientation = image.getexif().get(_ORIENTATION, UPRIGHT)
    if orientation not in range(1, 9):
        orientation = UPRIGHT
    return ImageHeader(codec, image.height, image.width, channels, U8, orientation)


def decode(
    data: np.ndarray,
    header: ImageHeader,
    color: str,
    region: tuple[int, int, int, int] | None,
) -> np.ndarray | None:
    """Pixels of the first image, HWC; `None` if that is impossible.

    Parameters are those of `nvimagecodec.decode_into`.
    """
    mode = {1: "L", 3: "RGB", 4: "RGBA"}[header.channels] if color == "NATIVE" else "RGB"
    if color == "GRAY" and header.channels == 1:
        mode = "L"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # said in an error, if it matters
            pixels = np.asarray(_open(data.data, header.codec).convert(mode))
    except (OSError, SyntaxError, ValueError, EOFError):
        return None
    if pixels.shape[:2] != (header.height, header.width):
        return None
    if region is not None:
        y0, x0, y1, x1 = region
        pixels = pixels[y0:y1, x0:x1]
    if mode == "L":
        return pixels[..., np.newaxis]
    if color == "GRAY":
        gray = np.empty((*pixels.shape[:2], 1), U8)
        convert.gray(pixels, gray)
        return gray
    return pixels[..., ::-1] if color == "BGR" else pixels


@cache
def _pillow() -> Any:
    with no_fork:
        from PIL import Image

    return Image


@cache
def _know_heic() -> None:
    """Teach Pillow HEIC."""
    with no_fork:
        import pillow_heif

    pillow_heif.register_heif_opener()


def _open(data: memoryview, codec: str) -> Any:
    """The file, of which no pixel is decoded yet."""
    try:
        image = _pillow()
        if codec == "heic":
            _know_heic()
    except ImportError as error:
        what = "pillow-heif" if codec == "heic" else "Pillow"
        raise BadSampleError(
            f"The data is a {NAMES[codec]} image, which needs {what}: `pip install "
            f"'headrace[images]'` ({error})."
        ) from error
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of many pixels: `max_pixels` is ours
            return image.open(io.BytesIO(data), formats=[_FORMATS[codec]])
    except (OSError, SyntaxError, ValueError, image.DecompressionBombError) as error:
        raise BadSampleError(
            f"The {NAMES[codec]} data ({len(data)} bytes) is cut off or damaged: {error}."
        ) from error


_FORMATS = {"gif": "GIF", "avif": "AVIF", "heic": "HEIF"}
