"""Colours of decoded frames: from planes of luma and chroma to RGB, YCbCr or gray."""

from __future__ import annotations

from functools import cache, lru_cache

import numpy as np

from headrace.kernels.compilation import njit
from headrace.kernels.cpu.simd import (
    LANES,
    VECTOR_BYTES,
    add,
    larger,
    load,
    multiply,
    smaller,
    spread,
    store_levels,
    subtract,
)

RGB, YCBCR, GRAY = range(3)
OWN, SPREAD = -1, -2
"""In place of the shift of chroma that is half as wide as luma: as wide, and any other width."""


@lru_cache(maxsize=64)
def taps(length: int, source: int) -> tuple[np.ndarray, np.ndarray]:
    """Taps of an axis of chroma for each of `length` pixels: first position, and the second's
    weight. It is enlarged linearly, its centre over that of luma.
    """
    at = (np.arange(length) + 0.5) * source / length - 0.5
    at = at.clip(0, source - 1)
    first = np.minimum(at.astype(np.int64), max(source - 2, 0))
    weights = (at - first).astype(np.float32)
    first.flags.writeable = weights.flags.writeable = False
    return first, weights


@cache
def matrix(red: float, blue: float) -> np.ndarray:
    """Gains: red of Cr, green of Cb and of Cr, and blue of Cb, where these are the shares of
    red and blue in luma. Source: ITU-R BT.601-7 and BT.709-6.
    """
    green = 1 - red - blue
    to_red, to_blue = 2 * (1 - red), 2 * (1 - blue)
    gains = to_red, -to_blue * blue / green, -to_red * red / green, to_blue
    found = np.array(np.round(gains, 6), np.float32)
    found.flags.writeable = False
    return found


@njit(nogil=True)
def _enlarge(chroma, out):  # type: ignore[no-untyped-def] # pragma: no cover
    """Fill `out` with a row of chroma of its width or half of it, enlarged as by `taps`."""
    count = len(chroma)
    if count == len(out):
        for k in range(count):
            out[k] = np.float32(chroma[k])
        return
    quarter, most = np.float32(0.25), np.float32(0.75)
    out[0] = np.float32(chroma[0])
    for k in range(1, count):
        before, own = np.float32(chroma[k - 1]), np.float32(chroma[k])
        out[2 * k - 1] = before + (own - before) * quarter
        out[2 * k] = before + (own - before) * most
    out[2 * count - 1] = np.float32(chroma[count - 1])


@njit(nogil=True)
def _limited(value):  # type: ignore[no-untyped-def] # pragma: no cover
    """Sixteen levels from 0 to 255, half a level added, so that they are rounded when cut."""
    value = smaller(larger(value, spread(np.float32(0))), spread(np.float32(255)))
    return add(value, spread(np.float32(0.5)))


@njit(nogil=True)
def _rgb_row(luma, at, wide, shift, top, other, weight, low, gain, gains, out, to):  # type: ignore[no-untyped-def] # pragma: no cover
    """Fill a row of RGB, uint8, sixteen pixels at a time; return how many pixels are done.

    `at`, `to`: offsets of the rows of luma and of the output in bytes. `wide`: enlarged rows of
    chroma, float32 ``(2, 2, pixels)``, of which the row is made of numbers `top` and `other`, from
    pixel `shift` on.
    """
    width = out.shape[1]
    lows, gain_of, middle = spread(low), spread(gain), spread(np.float32(128))
    red_v, green_u = spread(gains[0]), spread(gains[1])
    green_v, blue_u = spread(gains[2]), spread(gains[3])
    below, above = spread(weight), spread(np.float32(1) - weight)
    pixels = wide.shape[2]
    a, b, red_at = 4 * (pixels * top + shift), 4 * (pixels * other + shift), 8 * pixels
    for k in range(width // LANES):
        value = multiply(subtract(load(luma, at + LANES * k), lows), gain_of)
        x = VECTOR_BYTES * k
        u = add(multiply(load(wide, a + x), above), multiply(load(wide, b + x), below))
        x += red_at
        v = add(multiply(load(wide, a + x), above), multiply(load(wide, b + x), below))
        u, v = subtract(u, middle), subtract(v, middle)
        red = add(value, multiply(red_v, v))
        green = add(add(value, multiply(green_u, u)), multiply(green_v, v))
        blue = add(value, multiply(blue_u, u))
        store_levels(out, to + 3 * LANES * k, _limited(red), _limited(green), _limited(blue))
    return width // LANES * LANES


@njit(nogil=True)
def convert(luma, blue, red, rows, columns, shift, depth, full, matrix, kind, scale, rounding, out):  # type: ignore[no-untyped-def] # pragma: no cover
    """Fill `out`, (H, W, channels) of uint8 or float32, with the colours of a window of a frame.

    `luma`: that of the window. `blue`, `red`: columns of chroma that it needs, and all rows; chroma
    without elements is neutral. `rows` and `columns` are `taps` of the window; where chroma is half
    as wide as luma, the window begins `shift` pixels after the chroma does. `depth` is the number
    of bits, `full` the range, `matrix` gains of `matrix`; what is written is 0 to 255 times
    `scale`, with `rounding` added before it is cut to an integer.
    """
    height, width = out.shape[:2]
    unit = np.float32(1.0 / (1 << (depth - 8)))
    colored = blue.size > 0
    narrow = blue.shape[1]
    blues, reds = np.zeros(narrow, np.float32), np.zeros(narrow, np.float32)
    own = colored and shift == OWN
    if full:
        low, gain, chroma = np.float32(0), np.float32(1), np.float32(1)
    else:
        low, gain, chroma = np.float32(16), np.float32(255 / 219), np.float32(255 / 224)
    red_v, blue_u = matrix[0] * chroma, matrix[3] * chroma
    green_u, green_v = matrix[1] * chroma, matrix[2] * chroma
    least, middle, most = np.float32(0), np.float32(128), np.float32(255)
    gains = np.array([red_v, green_u, green_v, blue_u], np.float32)
    halved = colored and shift >= 0
    wide = np.full((2, 2, 2 * narrow if halved else width), middle, np.float32)
    held = np.full(2, -1, np.int64)
    begin = max(shift, 0)
    quick = kind == RGB and out.itemsize == 1 and luma.itemsize == 1 and scale == np.float32(1)
    quick = quick and (halved or own or not colored) and out.strides[2] == 1 and out.strides[1] == 3
    for y in range(height):
        top, weight, other, done = 0, np.float32(0), 0, 0
        if colored:
            top, weight = rows[0][y], rows[1][y] * unit
            other = min(top + 1, blue.shape[0] - 1)
        if quick:
            for row in (top, other):
                if colored and held[row % 2] != row:  # two rows of luma or more share it
                    _enlarge(blue[row], wide[0, row % 2])
                    _enlarge(red[row], wide[1, row % 2])
                    held[row % 2] = row
            to, at = y * out.strides[0], y * luma.strides[0]
            done = _rgb_row(
                luma, at, wide, begin, top % 2, other % 2, weight, low, gain, gains, out, to
            )
        if colored and not quick:
            rest = unit - weight
            for x in range(narrow):
                above, below = np.float32(blue[top, x]), np.float32(blue[other, x])
                blues[x] = above * rest + below * weight - middle
                above, below = np.float32(red[top, x]), np.float32(red[other, x])
                reds[x] = above * rest + below * weight - middle
        for x in range(done, width):
            value = np.float32(luma[y, x]) * unit
            u = v = np.float32(0)
            if quick:  # as `_rgb_row` does it, to the bit
                at, rest = begin + x, np.float32(1) - weight
                u = wide[0, top % 2, at] * rest + wide[0, other % 2, at] * weight - middle
                v = wide[1, top % 2, at] * rest + wide[1, other % 2, at] * weight - middle
            elif own:
                u, v = blues[x], reds[x]
            elif colored:
                left, part = columns[0][x], columns[1][x]
                right = min(left + 1, narrow - 1)
                u = blues[left] + (blues[right] - blues[left]) * part
                v = reds[left] + (reds[right] - reds[left]) * part
            if kind == YCBCR:
                if full:
                    value = value * np.float32(219 / 255) + np.float32(16)
                    u *= np.float32(224 / 255)
                    v *= np.float32(224 / 255)
                a, b, c = value, u + middle, v + middle
            else:
                value = (value - low) * gain
                a = value + red_v * v
                b = value + green_u * u + green_v * v
                c = value + blue_u * u
                if kind == GRAY:
                    a = value
            out[y, x, 0] = min(max(a, least), most) * scale + rounding
            if kind != GRAY:
                out[y, x, 1] = min(max(b, least), most) * scale + rounding
                out[y, x, 2] = min(max(c, least), most) * scale + rounding
