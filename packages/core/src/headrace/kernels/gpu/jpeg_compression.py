"""JPEG compression artefacts of images: the GPU's side of `kernels.cpu.jpeg_compression`."""

from __future__ import annotations

import numpy as np

from headrace.kernels.gpu.program import kernel
from headrace.kernels.gpu.records import THREADS, launch_records, quotient_up
from headrace.kernels.gpu.shared import record
from headrace.kernels.gpu.strided_axes import copied
from headrace.tensors.gpu.batch import DeviceBatch
from headrace.tensors.gpu.queue import Queue
from headrace.tensors.gpu.traced import traced

_IMAGE = record("""jpeg_compression:Image {
    uint32 first_block;
    uint64 source, planes, out;
    int64 height, width;
    int32 steps[128];  // of quantisation: luma's, and chroma's
}""")

_LUMA = """
16 11 10 16 24 40 51 61 12 12 14 19 26 58 60 55 14 13 16 24 40 57 69 56 14 17 22 29 51 87 80 62
18 22 37 56 68 109 103 77 24 35 55 64 81 104 113 92 49 64 78 87 103 121 120 101
72 92 95 98 112 100 103 99
"""
_CHROMA = """
17 18 24 47 99 99 99 99 18 21 26 66 99 99 99 99 24 26 56 99 99 99 99 99 47 66 99 99 99 99 99 99
"""
_STEPS = np.full(128, 99)
"""Tables K.1 and K.2 of ITU-T T.81, for quality 50."""
_STEPS[:64] = _LUMA.split()
_STEPS[64:96] = _CHROMA.split()


@traced
def _fill_steps(records: np.ndarray, qualities: np.ndarray) -> None:
    """Fill in the steps of images by their qualities, as libjpeg scales them."""
    percent = np.where(qualities < 50, 5000 // qualities, 200 - 2 * qualities)
    records["steps"] = np.clip((_STEPS * percent[:, np.newaxis] + 50) // 100, 1, 255)


def compress(queue: Queue, images: DeviceBatch, qualities: np.ndarray, out: DeviceBatch) -> None:
    """Fill `out` with RGB images as they come back from JPEG files.

    `qualities` are from 1 to 100, int64 ``(samples,)``.
    """
    records = np.zeros(len(out), _IMAGE)
    height, width = out.shapes[:, 0], out.shapes[:, 1]
    luma, chroma = height * width, ((height + 1) // 2) * ((width + 1) // 2)
    planes = queue.empty((luma + 2 * chroma)[:, np.newaxis], np.uint8, len(out))
    records["source"], records["out"] = images.pointers, out.pointers
    records["planes"], records["height"], records["width"] = planes.pointers, height, width
    _fill_steps(records, qualities)
    again = copied(records)  # a replay fills each table once
    blocks = quotient_up(height, 8) * quotient_up(width, 8)
    blocks += 2 * quotient_up(height, 16) * quotient_up(width, 16)
    launch_records(
        queue, kernel("jpeg_compression.cu", "jpeg_planes"), records, quotient_up(blocks, 4)
    )
    launch_records(
        queue, kernel("jpeg_compression.cu", "jpeg_pixels"), again, quotient_up(luma, THREADS)
    )
