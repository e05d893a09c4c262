"""Colours of pixels as Pillow and torchvision change them: saturation, hue, greyness.

Each loop comes for planes, three flat arrays, and for pixels of four bytes in one number, as Pillow
keeps RGB; both are simple enough for the compiler to work on vectors.
"""

from __future__ import annotations

import numpy as np

from headrace.kernels.compilation import njit

_F = np.float32
_ZERO, _ONE, _TOP = _F(0), _F(1), _F(255)
_RED, _GREEN, _BLUE = _F(0.2989), _F(0.587), _F(0.114)
_OPAQUE = np.uint32(0xFF000000)
_BYTE, _EIGHT, _SIXTEEN = np.uint32(255), np.uint32(8), np.uint32(16)


@njit(nogil=True)
def _pil_grey(r, g, b):  # type: ignore[no-untyped-def]
    """Luma as Pillow converts to "L"."""
    r, g, b = np.int32(r), np.int32(g), np.int32(b)
    return (
        r * np.int32(19595) + g * np.int32(38470) + b * np.int32(7471) + np.int32(0x8000)
    ) >> np.int32(16)


@njit(nogil=True)
def _grey(r, g, b):  # type: ignore[no-untyped-def]
    """Luma as torchvision computes it of bytes, cut off."""
    return np.int32(_F(r) * _RED + _F(g) * _GREEN + _F(b) * _BLUE)


@njit(nogil=True)
def _luma(r, g, b, pil):  # type: ignore[no-untyped-def]
    return _pil_grey(r, g, b) if pil else _grey(r, g, b)


@njit(nogil=True)
def _mixed(x, grey, factor, rest):  # type: ignore[no-untyped-def]
    value = _F(x) * factor + _F(grey) * rest
    return np.int32(min(max(value, _ZERO), _TOP))


@njit(nogil=True, error_model="numpy", inline="always")
def _channel(n, hue, value, chroma):  # type: ignore[no-untyped-def]
    """One of red (5), green (3) and blue (1), of a hue in sixths of a turn."""
    k = hue + n
    k = k - _F(6) if k >= _F(6) else k
    return value - chroma * max(min(min(k, _F(4) - k), _ONE), _ZERO)


@njit(nogil=True, error_model="numpy", inline="always")
def _sixths(r, g, b, high, spread):  # type: ignore[no-untyped-def]
    """Hue in sixths of a turn, from -1 to 5."""
    is_red, is_green = high == r, high == g
    difference = (g - b) if is_red else ((b - r) if is_green else (r - g))
    begin = _ZERO if is_red else (_F(2) if is_green else _F(4))
    return begin + difference / spread


@njit(nogil=True, error_model="numpy", inline="always")
def _turned(r, g, b, turn):  # type: ignore[no-untyped-def]
    """Another hue, of float32 colours; `turn` in sixths, from 0 to 6."""
    high = max(r, max(g, b))
    chroma = high - min(r, min(g, b))
    hue = _sixths(r, g, b, high, chroma if chroma > _ZERO else _ONE) + turn
    hue = hue - _F(6) if hue >= _F(6) else hue
    hue = hue + _F(6) if hue < _ZERO else hue
    return (
        _channel(_F(5), hue, high, chroma),
        _channel(_F(3), hue, high, chroma),
        _channel(_F(1), hue, high, chroma),
    )


@njit(nogil=True, error_model="numpy", inline="always")
def _turned_byte(r, g, b, turn):  # type: ignore[no-untyped-def]
    scale, back = _F(1 / 255), _F(255.999)
    r, g, b = _turned(_F(r) * scale, _F(g) * scale, _F(b) * scale, turn)
    return np.int32(r * back), np.int32(g * back), np.int32(b * back)


@njit(nogil=True, error_model="numpy", inline="always")
def _pil_channel(n, sixth, value, saturation):  # type: ignore[no-untyped-def]
    k = sixth + n
    k = k - _F(6) if k >= _F(6) else k
    part = max(min(min(k, _F(4) - k), _ONE), _ZERO)
    return np.int32(value * (_ONE - saturation * part) + _F(0.5))


@njit(nogil=True, error_model="numpy", inline="always")
def _pil_turned(r, g, b, shift):  # type: ignore[no-untyped-def]
    """Another hue, by way of Pillow's HSV of bytes."""
    r, g, b = _F(r), _F(g), _F(b)
    high = max(r, max(g, b))
    chroma = high - min(r, min(g, b))
    spread = chroma if chroma > _ZERO else _ONE
    is_red, is_green = high == r, high == g
    begin = _ZERO if is_red else (_F(2) if is_green else _F(4))
    more = b if is_red else (r if is_green else g)
    less = g if is_red else (b if is_green else r)
    sixths = (begin + (high - more) / spread) - (high - less) / spread
    turn = np.float64(sixths) / 6.0 + 1.0
    turn = turn - 1.0 if turn >= 1.0 else turn
    hue = np.int32(np.float64(_F(turn)) * 255.0)
    hue = hue if chroma > _ZERO else np.int32(0)
    hue = (hue + shift) & np.int32(255)
    share = chroma / (high if high > _ZERO else _ONE)
    saturation = _F(np.int32(np.float64(share) * 255.0)) * _F(1 / 255)
    sixth = _F(hue) * _F(6 / 255)
    sixth = sixth - _F(6) if sixth >= _F(6) else sixth
    return (
        _pil_channel(_F(5), sixth, high, saturation),
        _pil_channel(_F(3), sixth, high, saturation),
        _pil_channel(_F(1), sixth, high, saturation),
    )


@njit(nogil=True)
def _unpack(pixel):  # type: ignore[no-untyped-def]
    return (
        np.int32(pixel & _BYTE),
        np.int32((pixel >> _EIGHT) & _BYTE),
        np.int32((pixel >> _SIXTEEN) & _BYTE),
    )


@njit(nogil=True)
def _pack(r, g, b):  # type: ignore[no-untyped-def]
    return np.uint32(r) | (np.uint32(g) << _EIGHT) | (np.uint32(b) << _SIXTEEN) | _OPAQUE


@njit(nogil=True)
def saturate_planes(source: np.ndarray, out: np.ndarray, factor: float, pil: bool) -> None:
    """Mix pixels with their grey; ``(3, N)`` uint8."""
    first, rest = _F(factor), _F(1.0 - factor)
    reds, greens, blues = source[0], source[1], source[2]
    for i in range(reds.size):
        r, g, b = reds[i], greens[i], blues[i]
        grey = _luma(r, g, b, pil)
        out[0, i] = _mixed(r, grey, first, rest)
        out[1, i] = _mixed(g, grey, first, rest)
        out[2, i] = _mixed(b, grey, first, rest)


@njit(nogil=True)
def saturate_pixels(source: np.ndarray, out: np.ndarray, factor: float) -> None:
    """Mix pixels with their grey, as Pillow; ``(N,)`` uint32."""
    first, rest = _F(factor), _F(1.0 - factor)
    for i in range(source.size):
        r, g, b = _unpack(source[i])
        grey = _pil_grey(r, g, b)
        out[i] = _pack(
            _mixed(r, grey, first, rest),
            _mixed(g, grey, first, rest),
            _mixed(b, grey, first, rest),
        )


@njit(nogil=True, error_model="numpy")
def turn_planes(source: np.ndarray, out: np.ndarray, turn: float) -> None:
    """Turn the hue by parts of a turn, 0 to 1, as torchvision; ``(3, N)`` uint8 or float32."""
    by = _F(6.0 * turn)
    reds, greens, blues = source[0], source[1], source[2]
    for i in range(reds.size):
        out[0, i], out[1, i], out[2, i] = _turned_byte(reds[i], greens[i], blues[i], by)


@njit(nogil=True, error_model="numpy")
def turn_float_planes(source: np.ndarray, out: np.ndarray, turn: float) -> None:
    """The same for ``(3, N)`` float32 from 0 to 1."""
    by = _F(6.0 * turn)
    reds, greens, blues = source[0], source[1], source[2]
    for i in range(reds.size):
        out[0, i], out[1, i], out[2, i] = _turned(reds[i], greens[i], blues[i], by)


@njit(nogil=True, error_model="numpy")
def turn_pil_planes(source: np.ndarray, out: np.ndarray, shift: int) -> None:
    """Add to Pillow's hue, 0 to 255; ``(3, N)`` uint8."""
    by = np.int32(shift)
    reds, greens, blues = source[0], source[1], source[2]
    for i in range(reds.size):
        out[0, i], out[1, i], out[2, i] = _pil_turned(reds[i], greens[i], blues[i], by)


@njit(nogil=True, error_model="numpy")
def turn_pixels(source: np.ndarray, out: np.ndarray, shift: int) -> None:
    """The same for ``(N,)`` uint32."""
    by = np.int32(shift)
    for i in range(source.size):
        r, g, b = _unpack(source[i])
        r, g, b = _pil_turned(r, g, b, by)
        out[i] = _pack(r, g, b)


@njit(nogil=True)
def grey_planes(source: np.ndarray, out: np.ndarray, pil: bool) -> int:
    """Fill `out` ``(N,)`` with the grey of ``(3, N)`` uint8, and return the sum."""
    reds, greens, blues = source[0], source[1], source[2]
    total = 0
    for i in range(reds.size):
        grey = _luma(reds[i], greens[i], blues[i], pil)
        out[i] = grey
        total += grey
    return total


@njit(nogil=True)
def grey_sum_of_planes(source: np.ndarray, pil: bool) -> int:
    """Sum of the grey of ``(3, N)`` uint8."""
    reds, greens, blues = source[0], source[1], source[2]
    total = 0
    for i in range(reds.size):
        total += _luma(reds[i], greens[i], blues[i], pil)
    return total


@njit(nogil=True)
def grey_sum_of_pixels(source: np.ndarray) -> int:
    """Sum of Pillow's grey of ``(N,)`` uint32."""
    total = 0
    for i in range(source.size):
        r, g, b = _unpack(source[i])
        total += _pil_grey(r, g, b)
    return total


@njit(nogil=True)
def grey_pixels(source: np.ndarray, out: np.ndarray) -> None:
    """Pillow's grey of ``(N,)`` uint32, uint8."""
    for i in range(source.size):
        r, g, b = _unpack(source[i])
        out[i] = _pil_grey(r, g, b)


@njit(nogil=True)
def blend_levels(source: np.ndarray, out: np.ndarray, factor: float, offset: float) -> None:
    """``source * factor + offset``, cut off; flat uint8."""
    by, more = _F(factor), _F(offset)
    for i in range(source.size):
        out[i] = np.int32(min(max(_F(source[i]) * by + more, _ZERO), _TOP))


@njit(nogil=True)
def sharpen_rows(source: np.ndarray, out: np.ndarray, step: int, factor: float) -> None:
    """Mix bytes with the mean of their neighbours, the centre counting five times.

    `source`: ``(H, W * step)``, where neighbours are `step` bytes apart. Borders are left alone.
    """
    by, rest, part = _F(factor), _F(1.0 - factor), _F(1 / 13)
    height, width = source.shape
    out[0], out[height - 1] = source[0], source[height - 1]
    for y in range(1, height - 1):
        above, here, below, row = source[y - 1], source[y], source[y + 1], out[y]
        row[:step] = here[:step]
        row[width - step :] = here[width - step :]
        for x in range(np.uintp(step), np.uintp(width - step)):
            before, after = x - np.uintp(step), x + np.uintp(step)
            total = np.int32(above[before]) + np.int32(above[x]) + np.int32(above[after])
            total += np.int32(here[before]) + np.int32(here[after])
            total += np.int32(below[before]) + np.int32(below[x]) + np.int32(below[after])
            value = np.int32(here[x])
            smooth = np.int32(_F(total + np.int32(5) * value) * part + _F(0.5))
            mixed = _F(value) * by + _F(smooth) * rest
            row[x] = np.int32(min(max(mixed, _ZERO), _TOP))


@njit(nogil=True)
def histogram(source: np.ndarray, counts: np.ndarray) -> None:
    """Add the levels of flat uint8 to `counts`, int64 ``(256,)``."""
    for i in range(source.size):
        counts[source[i]] += 1


@njit(nogil=True)
def scale_planes(
    source: np.ndarray, means: np.ndarray, factors: np.ndarray, out: np.ndarray
) -> None:
    """``(level - mean) * factor``; uint8 ``(C, N)`` to float32."""
    for c in range(source.shape[0]):
        plane, row, mean, factor = source[c], out[c], means[c], factors[c]
        for i in range(plane.size):
            row[i] = (_F(plane[i]) - mean) * factor
