"""Pixels taken from elsewhere: the GPU's side of `headrace.kernels.cpu.displace`."""

from __future__ import annotations

import numpy as np

from headrace.kernels.gpu.program import kernel
from headrace.kernels.gpu.records import THREADS, fill_fields, launch_records, quotient_up
from headrace.kernels.gpu.shared import record
from headrace.tensors.gpu.batch import DeviceBatch, volumes
from headrace.tensors.gpu.queue import Queue

_IMAGE = record("""displace:Displaced {
    uint32 first_block, changed;
    uint64 source, out;
    int64 height, width, channels;
    float fill, numbers[6];
}""")
_JITTERED = record("""displace:Jittered {
    uint32 first_block, changed;
    uint64 source, units, out;
    int64 height, width, channels;
}""")


def displace(
    queue: Queue,
    images: DeviceBatch,
    changed: np.ndarray,
    numbers: tuple[float, ...],
    linear: bool,
    fill: np.float32,
    out: DeviceBatch,
) -> None:
    """Fill `out` with the displaced images, and those that are not `changed`, bool ``(samples,)``.

    `numbers` are amplitude, frequency and phase along x and y of a wave, or none of a sphere.
    """
    records = np.zeros(len(out), _IMAGE)
    fill_fields(records[["changed"]], changed)
    records["fill"] = fill
    records["source"], records["out"] = images.pointers, out.pointers
    records["height"], records["width"], records["channels"] = out.shapes.T
    if numbers:
        records["numbers"] = numbers
    pixels = records["height"] * records["width"]
    name = kernel("displace.cu", "displace", out.dtype, bool(numbers), linear)
    launch_records(queue, name, records, quotient_up(pixels, THREADS))


def jitter(
    queue: Queue,
    images: DeviceBatch,
    changed: np.ndarray,
    units: DeviceBatch,
    places: int,
    out: DeviceBatch,
) -> None:
    """Fill `out` with pixels from near by, and images that are not `changed`, bool ``(samples,)``.

    `units` are two numbers a pixel, as `kernels.cpu.displace.jitter` takes them.
    """
    records = np.zeros(len(out), _JITTERED)
    records["changed"], records["units"] = changed, units.pointers
    records["source"], records["out"] = images.pointers, out.pointers
    records["height"], records["width"], records["channels"] = out.shapes.T
    blocks = quotient_up(volumes(out.shapes[:, :2]), THREADS)
    launch_records(
        queue, kernel("jitter.cu", "jitter", out.dtype), records, blocks, np.int32(places)
    )
