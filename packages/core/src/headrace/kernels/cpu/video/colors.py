"""Colours of a frame of FFmpeg's, as operators want them."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.errors import BadSampleError
from headrace.kernels.cpu.video import planes

_FULL = 2
_NO_CHROMA = np.empty((0, 0), np.uint8)
_KINDS = {"RGB": planes.RGB, "YCbCr": planes.YCBCR, "GRAY": planes.GRAY}
CHANNELS = {"RGB": 3, "YCbCr": 3, "GRAY": 1}
"""The colours that frames can be had in, and how many channels they have."""
_DEEPEST = 16


# Shares of red and blue in luma, by the number that FFmpeg has for a matrix of ITU-R BT.709,
# BT.2020 and SMPTE 240M.
_BT601 = (0.299, 0.114)
_TAGGED = {1: (0.2126, 0.0722), 9: (0.2627, 0.0593), 10: (0.2627, 0.0593), 7: (0.212, 0.087)}


class Colors:
    """A conversion of frames: to `kind`, "RGB", "YCbCr" or "GRAY", from 0 to 255 times `scale`.

    With `tagged`, RGB is made by the matrix that a video names, and by that of ITU-R BT.601 where
    it names none.
    """

    def __init__(self, kind: str, scale: float = 1.0, *, tagged: bool = False) -> None:
        self._tagged = tagged
        self.channels = CHANNELS[kind]
        self.kind = _KINDS[kind]
        self.scale = np.float32(scale)

    def matrix(self, colorspace: int) -> np.ndarray:
        """Gains that make RGB, as of `planes.matrix`; `colorspace`: the one that a video names."""
        return planes.matrix(*(_TAGGED.get(colorspace, _BT601) if self._tagged else _BT601))

    def write(
        self,
        frame: Any,
        out: np.ndarray,
        size: tuple[int, int] | None = None,
        at: tuple[int, int] = (0, 0),
    ) -> None:
        """Fill `out`, ``(H, W, channels)`` of uint8 or float32, with a `VideoFrame`, or the window
        of it that begins `at` a row and column; the frame then has the extents `size`.
        """
        (top, left), (height, width) = at, out.shape[:2]
        rows, columns = slice(top, top + height), slice(left, left + width)
        if self.kind == planes.RGB and _has_rgb(frame.format):
            pixels = frame.to_ndarray(format="rgb24")[rows, columns]
            np.multiply(pixels, self.scale, out=out, casting="unsafe")
            return
        matrix = self.matrix(frame.colorspace)
        frame, full = _planar(frame)
        layout = frame.format
        high, wide = size or (height, width)
        depth = layout.components[0].bits
        luma = _plane(frame, 0, high, wide, depth)[rows, columns]
        blues = reds = _NO_CHROMA if depth == 8 else _NO_CHROMA.astype(np.uint16)
        down = across = planes.taps(1, 1)
        shift = planes.SPREAD
        if len(layout.components) > 2 and self.kind != planes.GRAY:
            extents = layout.chroma_height(high), layout.chroma_width(wide)
            down = planes.taps(high, extents[0])
            down = down[0][rows], down[1][rows]
            needed, shift, across = _chroma(wide, extents[1], left, left + width)
            blues, reds = (_plane(frame, k, *extents, depth)[:, needed] for k in (1, 2))
        rounding = np.float32(0.5 if out.dtype == np.uint8 else 0)
        planes.convert(
            *(luma, blues, reds, down, across, shift, depth, full),
            *(matrix, self.kind, self.scale, rounding, out),
        )


def _chroma(wide: int, narrow: int, begin: int, end: int) -> tuple[slice, int, Any]:
    """Columns of chroma that pixels of a row need, of `narrow` columns for `wide` pixels; how they
    are enlarged, and taps that do it.
    """
    first, weights = planes.taps(wide, narrow)
    shift = planes.SPREAD
    if narrow == wide:
        needed, shift = slice(begin, end), planes.OWN
    elif 2 * narrow == wide and narrow > 1:
        needed = slice(max(begin // 2 - 1, 0), min((end + 1) // 2 + 1, narrow))
        shift = begin - 2 * needed.start
    else:
        needed = slice(int(first[begin]), min(int(first[end - 1]) + 2, narrow))
    return needed, shift, (first[begin:end] - needed.start, weights[begin:end])


def _has_rgb(layout: Any) -> bool:
    return bool(layout.is_rgb or layout.has_palette or layout.is_bayer)


def _planar(frame: Any) -> tuple[Any, bool]:
    """The frame with a plane for each of luma and chroma, and whether its range is the full one."""
    layout = frame.format
    name: str = layout.name
    full = frame.color_range == _FULL or name.startswith("yuvj")
    if _has_rgb(layout):
        return frame.reformat(format="yuv444p", dst_colorspace=5, dst_color_range=_FULL), True
    planar = layout.is_planar and len({c.plane for c in layout.components}) == len(
        layout.components
    )
    gray = len(layout.components) < 3
    bits = layout.components[0].bits
    if (planar or (gray and bits >= 8)) and not layout.is_big_endian and 8 <= bits <= _DEEPEST:
        return frame, full or (gray and frame.color_range != 1)
    across = layout.chroma_width(64) if not gray else 64
    down = layout.chroma_height(64) if not gray else 64
    step = {(32, 32): "420", (32, 64): "422"}.get((across, down), "444")
    suffix = "10le" if bits > 8 else ""
    return frame.reformat(format=f"yuv{step}p{suffix}"), full


def _plane(frame: Any, number: int, height: int, width: int, depth: int) -> np.ndarray:
    plane = frame.planes[number]
    wide = depth > 8
    data = np.frombuffer(plane, np.uint16 if wide else np.uint8)
    stride = plane.line_size // (2 if wide else 1)
    if stride < width or len(data) < stride * (height - 1) + width:
        raise BadSampleError(f"A decoded frame is smaller than {height} x {width} pixels.")
    shape, strides = (height, width), (plane.line_size, data.itemsize)
    return np.lib.stride_tricks.as_strided(data, shape, strides, writeable=False)
