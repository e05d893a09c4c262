"""Images pasted together of regions of others."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from headrace.kernels.gpu.program import kernel
from headrace.kernels.gpu.records import THREADS, launch_records, quotient_up
from headrace.kernels.gpu.shared import record
from headrace.tensors.gpu.batch import DeviceBatch
from headrace.tensors.gpu.queue import Queue

_REGION = record("""paste:PastedRegion {
    uint64 source;  // the image
    int64 width;  // of the image
    int64 begin[2];  // row and column in the image
    int64 target[2];  // the same in the output
    int64 extent[2];
}""")
_IMAGE = record("""paste:PastedImage {
    uint32 first_block;
    int32 count;  // of regions
    uint64 regions, out;
    int64 width, channels, size;
}""")


def paste(
    queue: Queue,
    sources: Sequence[tuple[int, int, int]],
    places: Sequence[np.ndarray],
    dtype: np.dtype,
    out: DeviceBatch,
) -> None:
    """Fill `out` with regions of images, later ones above earlier ones, and zeros.

    `sources`: of each region of each sample: address, height and width of the image, or of the
    first one of a sequence. `places`: of each sample, int64 ``(frames, regions, 6)``: where regions
    begin in their images, where in the output, and their extents.
    """
    if not len(out):
        return
    frames = np.array([each.shape[0] for each in places])
    counts = np.array([each.shape[1] for each in places])
    owner = np.repeat(np.arange(len(out)), frames)
    """The sample that each image of the output is of."""
    number = np.arange(len(owner)) - np.repeat(np.cumsum(frames) - frames, frames)
    shapes, itemsize = out.shapes[owner, -3:], out.dtype.itemsize

    flat = np.concatenate([each.reshape(-1, 6) for each in places])
    image = np.repeat(np.arange(len(owner)), counts[owner])
    """The image of the output that each region is of."""
    first = np.cumsum(counts[owner]) - counts[owner]
    within = np.arange(len(flat)) - first[image]
    table = np.array(sources, np.uint64).reshape(-1, 3)
    address, height, width = table[(np.cumsum(counts) - counts)[owner[image]] + within].T
    regions = np.zeros(max(len(flat), 1), _REGION)  # something to upload in any case
    part = regions[: len(flat)]
    steps = (height * width).astype(np.int64) * shapes[image, 2] * dtype.itemsize
    part["source"] = address + (steps * number[image]).astype(np.uint64)
    part["width"] = width
    part["begin"], part["target"], part["extent"] = flat[:, :2], flat[:, 2:4], flat[:, 4:]

    records = np.zeros(len(owner), _IMAGE)
    records["count"] = counts[owner]
    records["regions"] = queue.upload(regions) + (first * _REGION.itemsize).astype(np.uint64)
    records["width"], records["channels"] = shapes[:, 1], shapes[:, 2]
    records["size"] = sizes = shapes.prod(axis=1)
    records["out"] = out.pointers[owner] + (number * sizes * itemsize).astype(np.uint64)
    name = kernel("paste.cu", "paste", dtype, out.dtype)
    launch_records(queue, name, records, quotient_up(sizes, THREADS))
