"""Decode with OpenCV: all formats but JPEG and TIFF, and these where nvImageCodec is missing.

nvImageCodec leaves PNG, WebP, PNM and JPEG 2000 to an OpenCV inside of it, with the same pixels;
but it is slower for small formats, and damaged JPEG 2000 crashes it. Regions are cut out of the
whole image.
"""

from __future__ import annotations

import threading

import numpy as np

from headrace.kernels.cpu.decode import convert
from headrace.kernels.cpu.decode.exif import UPRIGHT, upright
from headrace.kernels.cpu.decode.image_header import U8, U16, ImageHeader
from headrace.kernels.cpu.opencv import cv2

# What undoes each orientation: a quarter turn the other way, itself for all others.
_UNDO = {6: 8, 8: 6}


def decode(
    data: np.ndarray,
    header: ImageHeader,
    color: str,
    region: tuple[int, int, int, int] | None,
) -> np.ndarray | None:
    """Pixels of the image in `data`, HWC, in memory of OpenCV's; `None` if that is impossible.

    Parameters are those of `nvimagecodec.decode_into`.
    """
    image = _tiff(data, header) if header.codec == "tiff" else _decoded(data, header, color)
    if image is None or image.shape[:2] != (header.height, header.width):
        return None
    if region is not None:
        y0, x0, y1, x1 = region
        image = image[y0:y1, x0:x1]
    if header.codec == "tiff":
        image = _in_color(image, color)
    channels = {"GRAY": 1, "NATIVE": header.channels}.get(color, 3)
    if image is None or image.dtype != header.dtype or image.shape[2] != channels:
        return None
    return image


def _decoded(data: np.ndarray, header: ImageHeader, color: str) -> np.ndarray | None:
    """The whole image, HWC, its channels in the order of `color`."""
    cv = cv2()
    flags = {
        "RGB": cv.IMREAD_COLOR_RGB,
        "BGR": cv.IMREAD_COLOR_BGR,
        "GRAY": cv.IMREAD_GRAYSCALE,
        "NATIVE": cv.IMREAD_UNCHANGED,
    }[color]
    if color != "NATIVE":
        flags |= cv.IMREAD_IGNORE_ORIENTATION
        if header.dtype != U8:
            flags |= cv.IMREAD_ANYDEPTH
    image = _imdecode(data, flags)
    if image is None or color != "NATIVE" or image.shape[2] == 1:
        return image
    if header.channels == 2 and image.shape[2] == 4:
        return image[..., [0, 3]]  # OpenCV repeats gray three times to put alpha after it
    return image[..., [2, 1, 0, *range(3, image.shape[2])]]


def _tiff(data: np.ndarray, header: ImageHeader) -> np.ndarray | None:
    """The whole TIFF image, HWC, in the order BGR(A).

    OpenCV's own conversions go wrong for many kinds of TIFF, and it turns images even if told not
    to; so it is asked for what there is, and the turn is undone.
    """
    cv = cv2()
    if header.orientation == UPRIGHT:
        image = _imdecode(data, cv.IMREAD_UNCHANGED)
    else:
        image = _imdecode(data, cv.IMREAD_ANYCOLOR | cv.IMREAD_ANYDEPTH)
        if image is not None:
            image = upright(image, _UNDO.get(header.orientation, header.orientation))
    if image is not None and image.dtype == U8 and header.dtype == U16:
        image = image.astype(np.uint16) * np.uint16(257)  # a palette, whose colours have 16 bits
    return image


def _in_color(image: np.ndarray, color: str) -> np.ndarray | None:
    """The BGR(A) or gray `image` in `color`."""
    channels = image.shape[2]
    if channels == 1:
        return image if color in ("GRAY", "NATIVE") else np.repeat(image, 3, axis=2)
    if channels not in (3, 4):
        return None
    if color == "GRAY":
        gray = np.empty((*image.shape[:2], 1), image.dtype)
        convert.gray(image[..., 2::-1], gray)
        return gray
    if color == "NATIVE":
        return image[..., [2, 1, 0, 3][:channels]]
    return image[..., :3] if color == "BGR" else image[..., [2, 1, 0]]


def _imdecode(data: np.ndarray, flags: int) -> np.ndarray | None:
    """Decode `data` by OpenCV, always HWC."""
    cv = cv2()
    with silence:
        try:
            image = cv.imdecode(data, flags)
        except cv.error:
            return None
    if image is None:
        return None
    found: np.ndarray = image if image.ndim == 3 else image[..., np.newaxis]
    return found


class _Silence:
    """Keeps OpenCV from printing about damaged files: we raise errors with what is known."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._count = 0
        self._level = 0

    def __enter__(self) -> None:
        with self._lock:
            if self._count == 0:
                logging = cv2().utils.logging
                self._level = logging.setLogLevel(logging.LOG_LEVEL_SILENT)
            self._count += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._count -= 1
            if self._count == 0:
                cv2().utils.logging.setLogLevel(self._level)


silence = _Silence()
"""Entered while OpenCV decodes; it may be entered again."""
