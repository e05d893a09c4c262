"""Decode whole JPEG images with libjpeg-turbo, by simplejpeg: the fastest way by some percent.

Its pixels are those of the libjpeg-turbo in nvImageCodec, bit for bit. It is strict: data that
libjpeg-turbo warns about is left to the other back ends.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from types import ModuleType

import numpy as np

from headrace._forking import no_fork


@cache
def _simplejpeg() -> ModuleType:
    with no_fork:
        import simplejpeg

    return simplejpeg


def decode_into(out: np.ndarray, data: np.ndarray, color: str, *, fast_idct: bool) -> bool:
    """Decode an 8-bit JPEG that is not CMYK into the HWC array `out`; False if imperfect."""
    try:
        _simplejpeg().decode_jpeg(data, color, fastdct=fast_idct, buffer=out)
    except ValueError:
        return False
    return True


def decoder(*, fast_idct: bool) -> Callable[[np.ndarray, str, np.ndarray], None]:
    """A function of data, colours and an array; it raises `ValueError` if the image is
    imperfect.
    """
    decode = _simplejpeg().decode_jpeg

    def decode_one(data: np.ndarray, color: str, out: np.ndarray) -> None:
        decode(data, color, fastdct=fast_idct, buffer=out)

    return decode_one


def decode_inks_into(
    out: np.ndarray,
    data: np.ndarray,
    *,
    fast_idct: bool,
    region: tuple[int, int, int, int] | None,
) -> bool:
    """Decode a CMYK or YCCK JPEG, or a region of it, into the RGB array `out`.

    The inks are stored inverted, as Adobe does: red is cyan times black.
    """
    try:
        inks = _simplejpeg().decode_jpeg(data, "CMYK", fastdct=fast_idct)
    except ValueError:
        return False
    if region is not None:
        y0, x0, y1, x1 = region
        inks = inks[y0:y1, x0:x1]
    product = inks[..., :3].astype(np.uint16) * inks[..., 3:]
    np.floor_divide(product, np.uint16(255), out=out, casting="unsafe")
    return True
