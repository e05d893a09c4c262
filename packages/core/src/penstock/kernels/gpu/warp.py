"""Affine warps of images and volumes: every output element looks up where it comes from."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.kernels.cpu.warp import saturated_number
from penstock.kernels.cpu.warp_image import RESTART
from penstock.kernels.gpu.program import kernel
from penstock.kernels.gpu.records import THREADS
from penstock.kernels.gpu.shared import constant, record
from penstock.kernels.gpu.warp_matrices import DeviceMatrices
from penstock.kernels.plan.compiled import compiled
from penstock.tensors.gpu.batch import DeviceBatch, shape_rows
from penstock.tensors.gpu.queue import Queue

TILE_WIDTH = constant(__name__, "TILE_WIDTH", 64)
TILE_ROWS = constant(__name__, "TILE_ROWS", 32)
STRIP_WIDTH = constant(__name__, "RESTART", RESTART)
"""Elements of a row after which coordinates start afresh."""
MOST_CHANNELS = 4
"""Pixels of more channels, and batches of several numbers of channels, have a kernel in common."""

SAMPLE = record("""warp:Sample {
    uint64 source, out;
    double fill;
    float matrix[3][4];  // from (x, y, z, 1) of the output
    int32 extent[4];  // depth, height, width, channels
    int32 canvas[3];  // depth, height, width of the output
    int32 tiles_across;
}""")


def warp(
    queue: Queue,
    source: DeviceBatch,
    out: DeviceBatch,
    matrices: np.ndarray | DeviceMatrices,
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
        float32 ``(samples, 2, 3)`` or ``(samples, 3, 4)``, or one for all; they map
        (x, y[, z], 1) of the output to the input, in elements; or matrices on the device.
    nearest
        Take the nearest element instead of interpolating between 4 (8) neighbours.
    fill
        Value of everything outside of the input, in the units of `out`; `None` repeats the
        border, for which samples must not be empty, unless their output is.
    """
    if not len(out):
        return
    rank = source.ndim - 1
    known = matrices
    if isinstance(known, DeviceMatrices):  # they follow
        known = np.zeros((1, rank, rank + 1), np.float32)
    inside, beyond = fills(source, out.dtype, fill, nearest=nearest)
    samples = np.empty(len(out), SAMPLE)
    are_bytes = source.ndim == 3 and source.dtype == out.dtype == np.uint8
    most, channels, in_strips = _describe(
        samples,
        source.pointers,
        shape_rows(source),
        out.pointers,
        shape_rows(out),
        known,
        inside,
        beyond,
        TILE_WIDTH,
        STRIP_WIDTH if are_bytes and not nearest else 0,
        TILE_ROWS,
        MOST_CHANNELS,
    )
    name = kernel("warp.cu", "warp", source.dtype, out.dtype, rank, channels, nearest)
    if in_strips:
        name = kernel("warp_bytes.cu", "warp_bytes", channels)
    if not most:
        return
    described = queue.upload(samples)
    if isinstance(matrices, DeviceMatrices):
        matrices.place(queue, described, SAMPLE.itemsize, rank)
    queue.launch(
        name,
        (most * len(out), 1, 1),
        (THREADS, 1, 1),
        described,
        np.uint32(most),
        np.bool_(fill is None),
    )


@compiled
def common_channels(shapes: np.ndarray, in_strips: bool, most_channels: int) -> tuple[int, bool]:
    """The number of channels of all samples, 0 where the kernel has to look; and whether kernels
    that work by strips, if there are some, take all images.
    """
    rank = shapes.shape[1] - 1
    common = shapes[0, rank]
    for i in range(len(shapes)):
        size = 1
        for k in range(rank + 1):
            size *= shapes[i, k]
        in_strips &= size > 0 and size < 1 << 31 and shapes[i, rank - 1] >= 4
        if shapes[i, rank] != common:
            common = 0
    if common > most_channels:
        common = 0
    return common, in_strips and common > 0


@compiled
def place_matrix(sample: Any, matrix: np.ndarray) -> None:
    """Write a matrix ``(rank, rank + 1)`` to a sample; what it does not say is 0."""
    rank = len(matrix)
    for k in range(3):
        for j in range(4):
            sample.matrix[k, j] = 0
    for k in range(rank):
        for j in range(rank):
            sample.matrix[k, j] = matrix[k, j]
        sample.matrix[k, 3] = matrix[k, rank]


@compiled
def _describe(
    samples: np.ndarray,
    pointers: np.ndarray,
    shapes: np.ndarray,
    out: np.ndarray,
    out_shapes: np.ndarray,
    matrices: np.ndarray,
    fill: float,
    fill_of_empty: float,
    tile_width: int,
    strip_width: int,
    tile_rows: int,
    most_channels: int,
) -> tuple[int, int, bool]:
    """Fill `samples`.

    Parameters
    ----------
    strip_width
        Columns of a strip, where there is a kernel that works by strips; else 0.

    Returns
    -------
    tuple
        The most tiles or strips of a sample, 0 if there is nothing to do; the number of channels of
        all samples, 0 where the kernel has to look; and whether to work by strips, for which all
        images must be at least 4 pixels wide, and less than 2**31 bytes.
    """
    rank = shapes.shape[1] - 1
    absent = 3 - rank
    most, some = 0, False
    common, in_strips = common_channels(shapes, strip_width > 0, most_channels)
    width = strip_width if in_strips else tile_width
    for i in range(len(samples)):
        sample = samples[i]
        shape = shapes[i if len(shapes) > 1 else 0]
        out_shape = out_shapes[i if len(out_shapes) > 1 else 0]
        matrix = matrices[i if len(matrices) > 1 else 0]
        sample.source = pointers[i]
        sample.out = out[i]
        elements, made, lines = 1, 1, 1
        place_matrix(sample, matrix)
        for k in range(absent):
            sample.extent[k] = sample.canvas[k] = 1
        for k in range(rank):
            sample.canvas[absent + k] = out_shape[k]
            if k < rank - 1:
                lines *= out_shape[k]
        for k in range(rank + 1):
            sample.extent[absent + k] = shape[k]
            elements *= shape[k]
            made *= out_shape[k]
        sample.fill = fill if elements else fill_of_empty
        across = -(-out_shape[rank - 1] // width)
        sample.tiles_across = across
        most = max(most, across * -(-lines // tile_rows))
        some |= made > 0
    return most if some else 0, common, in_strips


def fills(
    source: DeviceBatch, dtype: np.dtype, fill: float | None, *, nearest: bool
) -> tuple[float, float]:
    """What elements outside have, in a sample and in one without elements."""
    if fill is None:
        return 0.0, 0.0
    value = float(saturated_number(fill, dtype))
    if nearest:
        return value, value
    # Where neighbours are interpolated, they also take on the type of the input, if there is one.
    return float(np.float32(saturated_number(value, source.dtype))), value
