"""Decode an image, or a region of it, to the colour space and element type that is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from headrace.errors import BadSampleError
from headrace.kernels.cpu.decode import convert, jpeg, opencv_codecs
from headrace.kernels.cpu.decode.backend import has_nvimagecodec
from headrace.kernels.cpu.decode.exif import UPRIGHT, stored_region, turned
from headrace.kernels.cpu.decode.image_header import U8, ImageHeader
from headrace.kernels.cpu.decode.rotate import rotate_into
from headrace.kernels.cpu.decode.stored import Allocator, Region, decode_stored

_SMALL_PIXELS = 1 << 14


@dataclass(frozen=True, slots=True)
class PixelFormat:
    """Format that decoded pixels are wanted in."""

    color: str
    """``"RGB"``, ``"BGR"``, ``"GRAY"``, ``"YCbCr"`` or, for the image's own, ``"ANY_DATA"``."""
    dtype: np.dtype
    adjust_orientation: bool = True
    fast_idct: bool = False

    def shape(self, header: ImageHeader) -> tuple[int, int, int]:
        """Height, width and channels of the decoded image."""
        height, width = header.size(self.adjust_orientation)
        if self.color == "ANY_DATA":
            return height, width, header.channels
        return height, width, 1 if self.color == "GRAY" else 3

    def shapes(self, headers: Sequence[ImageHeader]) -> np.ndarray:
        """The same of several images, many of which share a header; int64 ``(samples, 3)``."""
        shapes = {id(header): self.shape(header) for header in {id(h): h for h in headers}.values()}
        return np.array([shapes[id(header)] for header in headers], np.int64)

    def stored_color(self, channels: int) -> str:
        """Colours to decode an image to, before conversion: ``"RGB"``, ``"BGR"``, ``"GRAY"``, or
        ``"NATIVE"`` for its channels as they are.
        """
        if self.color == "ANY_DATA":
            return {1: "GRAY", 3: "RGB"}.get(channels, "NATIVE")
        return "RGB" if self.color == "YCbCr" else self.color

    def is_plain(self, header: ImageHeader) -> bool:
        """True if libjpeg-turbo or OpenCV makes these pixels of a JPEG or PNG file by itself."""
        if header.codec == "jpeg":
            return self.is_as_stored(header)
        upright = header.orientation == UPRIGHT or not self.adjust_orientation
        return (
            header.codec == "png"
            and upright
            and header.dtype == self.dtype
            and self.color != "YCbCr"
        )

    def is_as_stored(self, header: ImageHeader) -> bool:
        """True if nvImageCodec makes these pixels of a JPEG file by itself."""
        return (
            header.codec == "jpeg"
            and self.dtype == U8 == header.dtype
            and header.variant in ("", "rgb")
            and not header.unsupported
            and (header.orientation == UPRIGHT or not self.adjust_orientation)
            and self.color != "YCbCr"
            and has_nvimagecodec()
        )


def decode(
    data: np.ndarray,
    header: ImageHeader,
    wanted: PixelFormat,
    region: Region | None,
    empty: Allocator,
    temp: Allocator,
) -> np.ndarray:
    """Pixels of the image in `data`, HWC, or of `region` of the upright image."""
    native = header.dtype
    if native is None or header.unsupported:
        raise BadSampleError(f"The data is {header.unsupported}, which cannot be decoded.")
    try:
        return _decode(data, header, native, wanted, region, empty, temp)
    except MemoryError as error:
        raise BadSampleError(
            f"There is not enough memory for an image of {header.height} x {header.width} pixels."
        ) from error


def decode_all(
    data: Sequence[np.ndarray],
    headers: Sequence[ImageHeader],
    regions: Sequence[Region | None],
    wanted: PixelFormat,
    out: Sequence[np.ndarray],
    temp: Allocator,
) -> None:
    """Decode images, or regions of them, into the arrays `out`, HWC."""
    by_turbo = jpeg.decoder(fast_idct=wanted.fast_idct)
    colors = {
        id(header): wanted.stored_color(header.channels) if wanted.is_plain(header) else ""
        for header in {id(header): header for header in headers}.values()
    }
    """Of files that need nothing but to be decoded, by their headers, of which many share one."""
    with opencv_codecs.silence:
        for encoded, header, region, pixels in zip(data, headers, regions, out, strict=True):
            color = colors[id(header)]
            found = None
            if color and header.codec == "jpeg" and (region is None or _is_small(header)):
                if region is None:
                    by_turbo(encoded, color, pixels)
                    continue
                # To decode a part of so few pixels takes longer than to decode them all.
                whole = temp((header.height, header.width, pixels.shape[2]), U8)
                by_turbo(encoded, color, whole)
                y0, x0, y1, x1 = region
                found = whole[y0:y1, x0:x1]
            elif color and region is None:
                found = opencv_codecs.decode(encoded, header, color, None)
            if found is None:
                found = decode(encoded, header, wanted, region, temp, temp)
            np.copyto(pixels, found)


def _is_small(header: ImageHeader) -> bool:
    return header.height * header.width <= _SMALL_PIXELS


def _decode(
    data: np.ndarray,
    header: ImageHeader,
    native: np.dtype,
    wanted: PixelFormat,
    region: Region | None,
    empty: Allocator,
    temp: Allocator,
) -> np.ndarray:
    height, width, channels = wanted.shape(header)
    if region == (0, 0, height, width):
        region = None
    stored_color = wanted.stored_color(channels)
    converts = wanted.color == "YCbCr" or native != wanted.dtype
    orientation = header.orientation if wanted.adjust_orientation else UPRIGHT
    if orientation == UPRIGHT:
        memory = temp if converts else empty
        pixels = decode_stored(data, header, stored_color, wanted.fast_idct, region, memory, temp)
    else:
        if region is not None:
            region = stored_region(region, height, width, orientation)
        # DALI decodes images that it turns by another way, which knows no fast transform.
        stored = decode_stored(data, header, stored_color, False, region, temp, temp)
        rows, columns = stored.shape[:2]
        shape = (columns, rows, channels) if turned(orientation) else (rows, columns, channels)
        pixels = (temp if converts else empty)(shape, native)
        rotate_into(pixels, stored, orientation)
    if not converts:
        return pixels
    out = empty(pixels.shape, wanted.dtype)
    if wanted.color == "YCbCr":
        convert.ycbcr(pixels, out)
    else:
        convert.rescale(pixels, out)
    return out
