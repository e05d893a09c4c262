"""Colours of frames that a GPU's decoder has decoded: `kernels.cpu.video.colors` on the GPU."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from headrace.kernels.cpu.decode.exif import UPRIGHT, mirrored, turned
from headrace.kernels.cpu.video.colors import Colors
from headrace.kernels.gpu.program import kernel
from headrace.kernels.gpu.records import quotient_up
from headrace.kernels.gpu.shared import enumeration
from headrace.tensors.gpu.runtime import Runtime

enumeration(__name__, "Colors", ["RGB", "YCBCR", "GRAY"])  # as in `kernels.cpu.video.planes`
_BLOCK = (32, 8, 1)


class DevicePlanes(NamedTuple):
    """A frame in device memory: luma, and chroma of half its extents, blue and red in turns."""

    luma: int
    chroma: int
    luma_pitch: int
    """Bytes from row to row."""
    chroma_pitch: int
    height: int
    width: int


def write_colors(
    runtime: Runtime,
    stream: int,
    planes: DevicePlanes,
    colors: Colors,
    out: int,
    dtype: np.dtype,
    *,
    full: bool,
    colorspace: int,
    orientation: int = UPRIGHT,
) -> None:
    """Queue filling memory at `out`, ``(H, W, channels)`` of uint8 or float32.

    `full` is the range of the samples, `colorspace` the matrix that the video names,
    `orientation` the turn of the picture.
    """
    found = kernel("video_colors.cu", "video_colors", np.dtype(np.uint8), dtype)
    chroma = 1.0 if full else 255 / 224
    gains = colors.matrix(colorspace) * np.float32(chroma)
    function = runtime.function(found.source(), found.name)
    across, down = (
        quotient_up(n, b) for n, b in zip((planes.width, planes.height), _BLOCK, strict=False)
    )
    function(
        (int(across), int(down), 1),
        _BLOCK,
        (
            *(np.uint64(planes.luma), np.uint64(planes.chroma)),
            *(np.int64(planes.luma_pitch), np.int64(planes.chroma_pitch)),
            *(np.int32(planes.height), np.int32(planes.width)),
            *(np.int32(colors.kind), np.int32(full)),
            *gains,
            *(colors.scale, np.float32(0.5 if dtype == np.uint8 else 0)),
            *_places(planes, orientation),
            np.uint64(out),
        ),
        0,
        stream,
    )


def _places(planes: DevicePlanes, orientation: int) -> list[np.int64]:
    """The pixel of the output that the first one as stored becomes, and steps from it: to that of
    the next row, and of the next column.
    """
    down, across = planes.height, planes.width
    if turned(orientation):
        down, across = across, down
    rows, columns = mirrored(orientation)
    first = rows * (down - 1) * across + columns * (across - 1)
    steps = -across if rows else across, -1 if columns else 1
    return [np.int64(n) for n in (first, *(steps[::-1] if turned(orientation) else steps))]
