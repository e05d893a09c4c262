"""Decode an image as it is stored: its own element type, its orientation ignored."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from penstock.errors import BadSampleError
from penstock.kernels.cpu.decode import convert, jpeg, nvimagecodec, opencv_codecs
from penstock.kernels.cpu.decode.backend import has_nvimagecodec
from penstock.kernels.cpu.decode.diagnosis import reason
from penstock.kernels.cpu.decode.image_header import U8, ImageHeader

Region = tuple[int, int, int, int]
"""First row and column, and one past the last row and column."""

# What a region of a JPEG costs, in parts of the whole image: entropy decoding of all rows above its
# end, transform and colours of its area, and cutting rows to columns. Measured on photographs.
_ENTROPY, _TRANSFORM, _CUT = 0.62, 0.38, 0.1


def decode_stored(
    data: np.ndarray,
    header: ImageHeader,
    color: str,
    fast_idct: bool,
    region: Region | None,
    memory: Callable[[tuple[int, ...], np.dtype], np.ndarray],
    temp: Callable[[tuple[int, ...], np.dtype], np.ndarray],
) -> np.ndarray:
    """Pixels of `region`, HWC, or of the whole image.

    Parameters
    ----------
    color
        ``"RGB"``, ``"BGR"``, ``"GRAY"``, or ``"NATIVE"`` for the channels as they are.
    memory, temp
        Where memory for the result and for steps on the way to it comes from. The result may be a
        view of either.

    Raises
    ------
    BadSampleError
        If the pixels cannot be decoded.
    """
    channels = {"GRAY": 1, "NATIVE": header.channels}.get(color, 3)
    dtype = header.dtype or U8
    nv = has_nvimagecodec()
    plain_jpeg = header.codec == "jpeg" and header.variant == ""
    if region is not None and plain_jpeg and (not nv or _whole_is_cheaper(header, region)):
        whole = temp((header.height, header.width, channels), dtype)
        if jpeg.decode_into(whole, data, color, fast_idct=fast_idct):
            y0, x0, y1, x1 = region
            return whole[y0:y1, x0:x1]
    if region is None:
        height, width = header.height, header.width
    else:
        height, width = region[2] - region[0], region[3] - region[1]
    if header.codec == "jpeg" and header.variant == "cmyk" and color != "RGB":
        return _decode_inks(data, header, color, fast_idct, region, memory, temp)
    if header.codec == "tiff" and header.channels == 2 and color in ("RGB", "BGR"):
        # Gray and alpha: nvImageCodec would take the alpha for green.
        gray = decode_stored(data, header, "GRAY", fast_idct, region, temp, temp)
        out = memory((height, width, channels), dtype)
        np.copyto(out, gray)
        return out
    out = memory((height, width, channels), dtype)
    if region is None and plain_jpeg and jpeg.decode_into(out, data, color, fast_idct=fast_idct):
        return out
    if nv and nvimagecodec.decode_into(out, data, color, fast_idct=fast_idct, region=region):
        return out
    if header.variant == "cmyk":
        if not nv and jpeg.decode_inks_into(out, data, fast_idct=fast_idct, region=region):
            return out
    # nvImageCodec does not take every valid file (WebP with metadata, JPEG 2000 gray with alpha,
    # ...). Of JPEG it takes all that libjpeg-turbo takes.
    elif not (nv and header.codec == "jpeg") and opencv_codecs.decode_into(
        out, data, header, color, region=region
    ):
        return out
    raise BadSampleError(reason(data.data, header, color))


def _whole_is_cheaper(header: ImageHeader, region: Region) -> bool:
    y0, x0, y1, x1 = region
    area = (y1 - y0) * (x1 - x0) / (header.height * header.width)
    cost = _ENTROPY * y1 / header.height + _TRANSFORM * area
    return cost + (_CUT if x1 - x0 < header.width else 0) > 1


def _decode_inks(
    data: np.ndarray,
    header: ImageHeader,
    color: str,
    fast_idct: bool,
    region: Region | None,
    memory: Callable[[tuple[int, ...], np.dtype], np.ndarray],
    temp: Callable[[tuple[int, ...], np.dtype], np.ndarray],
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
