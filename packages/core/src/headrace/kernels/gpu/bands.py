"""Linear maps along one axis: filter banks of the mel scale, and cosine transforms."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from headrace.kernels.gpu.program import kernel
from headrace.kernels.gpu.records import THREADS, launch_evenly
from headrace.kernels.gpu.shared import record
from headrace.tensors.gpu.batch import DeviceBatch
from headrace.tensors.gpu.queue import Queue

if TYPE_CHECKING:
    from headrace.kernels.gpu.spectrogram import DeviceBands

_SAMPLE = record("""bands:Sample {
    uint64 source, out, ranges, weights;
    int64 size;  // of the output
    int64 inner;
    int32 extent, sums;
}""")


def apply_bands(
    queue: Queue,
    data: DeviceBatch,
    axis: int,
    bands_of: Callable[[int], DeviceBands],
    out: DeviceBatch,
) -> None:
    """Fill `out` with weighted sums of `data` along `axis`."""
    sizes = out.sizes()
    if not sizes.any():
        return
    samples = np.zeros(len(data), _SAMPLE)
    samples["source"], samples["out"], samples["size"] = data.pointers, out.pointers, sizes
    samples["inner"] = data.shapes[:, axis + 1 :].prod(axis=1)
    samples["extent"] = extents = data.shapes[:, axis]
    for extent in np.unique(extents[sizes > 0]).tolist():
        bands = bands_of(extent)
        members = extents == extent
        for name, address in bands.addresses(queue).items():
            samples[name][members] = address
        samples["sums"][members] = bands.sums
    most = -(-int(sizes.max()) // THREADS)
    launch_evenly(queue, kernel("bands.cu", "apply_bands"), samples, most)
