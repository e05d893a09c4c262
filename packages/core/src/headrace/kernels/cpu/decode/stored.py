"""Decode an image as it is stored: its own element type, its orientation ignored."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from headrace.errors import BadSampleError
from headrace.kernels.cpu.decode import (
    convert,
    jpeg,
    nvimagecodec,
    opencv_codecs,
    pillow_codecs,
    tiff_header,
)
from headrace.kernels.cpu.decode.backend import has_nvimagecodec
from headrace.kernels.cpu.decode.diagnosis import reason
from headrace.kernels.cpu.decode.image_header import U8, ImageHeader

Allocator = Callable[[tuple[int, ...], np.dtype], np.ndarray]
Region = tuple[int, int, int, int]
"""First row and column, and one past the last row and column."""

_BY_NVIMAGECODEC = ("jpeg", "tiff")


def decode_stored(
    data: np.ndarray,
    header: ImageHeader,
    color: str,
    fast_idct: bool,
    region: Region | None,
    memory: Allocator,
    temp: Allocator,
) -> np.ndarray:
    """Pixels of `region`, HWC, or of the whole image."""
    if header.codec in pillow_codecs.NAMES:
        found = pillow_codecs.decode(data, header, color, region)
    elif header.codec not in _BY_NVIMAGECODEC:
        found = opencv_codecs.decode(data, header, color, region)
    elif header.variant == "cmyk" and color != "RGB":
        found = _decode_inks(data, header, color, fast_idct, region, memory, temp)
    elif header.codec == "tiff" and header.channels == 2 and color in ("RGB", "BGR"):
        # Gray and alpha: nvImageCodec would take the alpha for green.
        gray = decode_stored(data, header, "GRAY", fast_idct, region, temp, temp)
        found = memory((*gray.shape[:2], 3), gray.dtype)
        np.copyto(found, gray)
    elif (header.codec, header.channels, color) == ("tiff", 2, "NATIVE") and has_nvimagecodec():
        # It does not decode two channels as they are; but see above.
        rgb = _decode_tiff(data, header, "RGB", region, temp)
        found = None if rgb is None else rgb[..., :2]
    elif header.codec == "tiff":
        found = _decode_tiff(data, header, color, region, memory)
    else:
        found = _decode_jpeg(data, header, color, fast_idct, region, memory, temp)
    if found is None:
        raise BadSampleError(reason(data.data, header, color))
    return found


def _decode_jpeg(
    data: np.ndarray,
    header: ImageHeader,
    color: str,
    fast_idct: bool,
    region: Region | None,
    memory: Allocator,
    temp: Allocator,
) -> np.ndarray | None:
    channels = 1 if color == "GRAY" else 3
    whole_shape = (header.height, header.width, channels)
    nv = has_nvimagecodec()
    plain = header.variant in ("", "rgb")
    if region is not None and plain and not nv:
        whole = temp(whole_shape, U8)
        if jpeg.decode_into(whole, data, color, fast_idct=fast_idct):
            y0, x0, y1, x1 = region
            return whole[y0:y1, x0:x1]
    least = min(nvimagecodec.LEAST_COLUMNS, header.width)
    if region is not None and nv and region[3] - region[1] < least:
        wide, cut = _widened(region, header.width)
        found = _decode_jpeg(data, header, color, fast_idct, wide, temp, temp)
        return None if found is None else found[:, cut]
    out = memory(whole_shape if region is None else _shape_of(region, channels), U8)
    if region is None and plain and jpeg.decode_into(out, data, color, fast_idct=fast_idct):
        return out
    if nv:
        good = nvimagecodec.decode_into(
            out, data, header, color, fast_idct=fast_idct, region=region
        )
        return out if good else None
    if header.variant == "cmyk":
        good = jpeg.decode_inks_into(out, data, fast_idct=fast_idct, region=region)
        return out if good else None
    return opencv_codecs.decode(data, header, color, region)


def _decode_tiff(
    data: np.ndarray, header: ImageHeader, color: str, region: Region | None, memory: Allocator
) -> np.ndarray | None:
    if color == "NATIVE" and header.channels == 4:
        data = tiff_header.as_stored(data)
    if has_nvimagecodec():
        channels = {"GRAY": 1, "NATIVE": header.channels}.get(color, 3)
        whole = (0, 0, header.height, header.width)
        out = memory(_shape_of(region or whole, channels), header.dtype or U8)
        if nvimagecodec.decode_into(out, data, header, color, fast_idct=False, region=region):
            return out
    # nvImageCodec takes no TIFF that leaves out what has a default.
    return opencv_codecs.decode(data, header, color, region)


def _shape_of(region: Region, channels: int) -> tuple[int, int, int]:
    y0, x0, y1, x1 = region
    return y1 - y0, x1 - x0, channels


def _widened(region: Region, width: int) -> tuple[Region, slice]:
    """A region of enough columns around `region`, and its columns therein."""
    y0, x0, y1, x1 = region
    left = max(0, min(x0, width - nvimagecodec.LEAST_COLUMNS))
    right = min(width, left + nvimagecodec.LEAST_COLUMNS)
    return (y0, left, y1, right), slice(x0 - left, x1 - left)


def _decode_inks(
    data: np.ndarray,
    header: ImageHeader,
    color: str,
    fast_idct: bool,
    region: Region | None,
    memory: Allocator,
    temp: Allocator,
) -> np.ndarray:
    """Pixels of a CMYK or YCCK JPEG in another colour space than RGB."""
    if color == "NATIVE":
        raise BadSampleError(
            "The data is a CMYK JPEG, which cannot be decoded to its inks: "
            "`output_type=types.ANY_DATA` is not possible, `types.RGB` is."
        )
    rgb = decode_stored(data, header, "RGB", fast_idct, region, temp, temp)
    out = memory((*rgb.shape[:2], 1 if color == "GRAY" else 3), U8)
    if color == "GRAY":
        convert.gray_of_inks(rgb, out)
    else:
        np.copyto(out, rgb[..., ::-1])
    return out
