"""Affine warps of images and volumes: every output element looks up where it comes from."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from penstock.kernels.cpu.warp import saturated_number
from penstock.kernels.gpu.program import kernel

if TYPE_CHECKING:
    from penstock.tensors.gpu.batch import DeviceBatch
    from penstock.tensors.gpu.queue import Queue

_TILE_WIDTH, _TILE_ROWS, _THREADS = 64, 32, 256
_MOST_CHANNELS = 4
"""Pixels of more channels, and batches of several numbers of channels, have a kernel in common."""

_SAMPLE = np.dtype(
    [
        ("source", np.uint64),
        ("out", np.uint64),
        ("fill", np.float64),
        ("matrix", np.float32, (3, 4)),
        ("extent", np.int32, 4),
        ("canvas", np.int32, 3),
        ("tiles_across", np.int32),
    ],
    align=True,
)


def warp(
    queue: Queue,
    source: DeviceBatch,
    out: DeviceBatch,
    matrices: np.ndarray,
    *,
    nearest: bool,
    fill: float | None,
) -> None:
    """Fill `out` with `source` seen through affine maps, with the values of `kernels.cpu.warp`.

    Parameters
    ----------
    source
        ``(H, W, C)`` or ``(D, H, W, C)``, of type uint8, int16, int32 or float32.
    out
        Same rank and channels, of the same type or float32, or of any of the types if `source` is
        float32.
    matrices
        float32 ``(samples, 2, 3)`` or ``(samples, 3, 4)``; they map (x, y[, z], 1) of the output to
        the input, in elements.
    nearest
        Take the nearest element instead of interpolating between 4 (8) neighbours.
    fill
        Value of everything outside of the input, in the units of `out`; `None` repeats the
        border, for which samples must not be empty, unless their output is.
    """
    rank = source.ndim - 1
    canvas = out.shapes[:, :-1]
    across = -(-canvas[:, -1] // _TILE_WIDTH)
    tiles = across * -(-canvas[:, :-1].prod(axis=1) // _TILE_ROWS)
    channels = _common_channels(source.shapes[:, -1])
    if not len(out) or not out.sizes().any():
        return
    samples = np.zeros(len(out), _SAMPLE)
    samples["source"], samples["out"] = source.pointers, out.pointers
    samples["fill"] = _fills(source, out.dtype, fill, nearest=nearest)
    samples["matrix"][:, :rank, :rank] = matrices[:, :, :rank]
    samples["matrix"][:, :rank, 3] = matrices[:, :, rank]
    samples["extent"][:, 0] = samples["canvas"][:, 0] = 1
    samples["extent"][:, 3 - rank :] = source.shapes
    samples["canvas"][:, 3 - rank :] = canvas
    samples["tiles_across"] = across
    most = int(tiles.max())
    queue.launch(
        kernel("warp.cu", "warp", source.dtype, out.dtype, rank, channels, nearest),
        (most * len(out), 1, 1),
        (_THREADS, 1, 1),
        queue.upload(samples),
        np.int32(most),
        np.bool_(fill is None),
    )


def _common_channels(channels: np.ndarray) -> int:
    """The number of channels of all samples; 0 where the kernel has to look."""
    first = int(channels[0]) if len(channels) else 0
    return first if first <= _MOST_CHANNELS and (channels == first).all() else 0


def _fills(
    source: DeviceBatch, dtype: np.dtype, fill: float | None, *, nearest: bool
) -> np.ndarray | float:
    """What elements outside have in each sample."""
    if fill is None:
        return 0.0
    value = saturated_number(fill, dtype)
    if nearest:
        return value
    # Where neighbours are interpolated, they also take on the type of the input, if there is one.
    blended = float(np.float32(saturated_number(value, source.dtype)))
    return np.where(source.sizes() == 0, value, blended)
