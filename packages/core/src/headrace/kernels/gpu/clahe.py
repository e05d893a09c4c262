"""Contrast limited adaptive histogram equalization: the GPU's side of `kernels.cpu.clahe`."""

from __future__ import annotations

from functools import cache

import numpy as np

from headrace.kernels.gpu.device_constant import DeviceConstant
from headrace.kernels.gpu.program import kernel
from headrace.kernels.gpu.records import THREADS, launch_records, quotient_up
from headrace.kernels.gpu.shared import constant, record
from headrace.tensors.gpu.batch import DeviceBatch, volumes
from headrace.tensors.gpu.queue import Queue

_TILED = record("""clahe:Tiled {
    uint32 first_block, channels;
    uint32 planes;  // that are equalized
    int32 limit;  // of a bin; 0 for none
    int32 across;  // tiles
    int32 down, tile_width, tile_height;
    uint64 source, tables, out;
    int64 height, width;
}""")
_LEVELS = constant(__name__, "LEVELS", 256)


class Clahe:
    """Equalization with settings that do not change; see `headrace.kernels.cpu.clahe`."""

    def __init__(self, tiles: tuple[int, int], limit: float, luma_only: bool) -> None:
        self._tiles, self._limit, self._luma_only = tiles, limit, luma_only
        self._lab = DeviceConstant(_lab_tables())

    def run(self, queue: Queue, images: DeviceBatch, out: DeviceBatch) -> None:
        """Fill `out` with the images."""
        records = np.empty(len(out), _TILED)
        extents = out.shapes[:, 1::-1]
        rest = extents % self._tiles
        # As in OpenCV, an axis without a rest grows by a whole tile if the other has one.
        grown = extents + np.where(rest.any(axis=1, keepdims=True), self._tiles - rest, 0)
        sides = grown // self._tiles
        areas = volumes(sides)
        limits = np.maximum((max(self._limit, 0) * areas / _LEVELS).astype(np.int32), 1)
        channels = out.shapes[:, 2]
        planes = np.where(self._luma_only, 1, channels)
        tables = planes * self._tiles[0] * self._tiles[1]
        pixels = volumes(extents)
        memory = queue.empty(tables[:, np.newaxis] * _LEVELS, np.uint8)
        records["source"], records["out"] = images.pointers, out.pointers
        records["tables"], records["limit"] = memory.pointers, limits if self._limit > 0 else 0
        records["channels"], records["planes"] = channels, planes
        records["across"], records["down"] = self._tiles
        records["tile_width"], records["tile_height"] = sides.T
        records["width"], records["height"] = extents.T
        lab = np.uint64(self._lab.address(queue))
        blocks = np.where(pixels > 0, tables, 0)
        launch_records(queue, kernel("clahe.cu", "fill_tables"), records, blocks, lab)
        blocks = quotient_up(pixels, THREADS)
        launch_records(queue, kernel("clahe.cu", "equalize_tiles"), records, blocks, lab)


@cache
def _lab_tables() -> np.ndarray:
    """Tables that OpenCV uses to convert bytes to CIE L*a*b* and back, concatenated.

    Linear light of a level, in 1/2040; the root of it in 2^-15; of a lightness Y and the root of
    it, in 2^-14; X or Z of a root, in 2^-14 from -8145 on; the level of a light in 2^-12.
    """
    levels = np.arange(_LEVELS) / 255
    light = np.where(levels <= 0.04045, levels / 12.92, ((levels + 0.055) / 1.055) ** 2.4) * 2040
    y = np.arange(3072) / 2040
    roots = np.rint(2**15 * np.where(y < 216 / 24389, y * 841 / 108 + 16 / 116, np.cbrt(y)))
    roots[[49, 628]] = 9454, 22126  # OpenCV's single precision
    root = (levels * 100 + 16) / 116
    dark = levels * 100 <= 8
    own_y = np.where(dark, levels * 2700 / 24389, root**3) * 2**14
    own_root = np.where(dark, 16 / 116 + levels * 100 / 116, root) * 2**14
    near = np.arange(-8145, 2**14 * 9 // 4 - 8145)
    linear = np.trunc(near * 108 / 841) - 2**14 * 16 // 116 * 108 // 841
    square = near * near // 2**14
    cubes = np.where(near <= 3390, linear, square * near // 2**14)
    back = np.arange(4096) / 4096
    gamma = np.where(back <= 0.0031308, back * 12.92, 1.055 * back ** (1 / 2.4) - 0.055) * 255
    return np.rint(np.concatenate([light, roots, own_y, own_root, cubes, gamma])).astype(np.int32)
