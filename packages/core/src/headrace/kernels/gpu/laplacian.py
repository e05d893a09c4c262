"""Sums of second derivatives: the GPU's side of `headrace.kernels.cpu.laplacian`."""

from __future__ import annotations

import numpy as np

from headrace.kernels.cpu.laplacian import window
from headrace.kernels.gpu.filter import FilterWindows, filter_separably
from headrace.kernels.gpu.program import kernel
from headrace.kernels.gpu.records import THREADS, launch_records, quotient_up
from headrace.kernels.gpu.shared import record
from headrace.tensors.gpu.batch import DeviceBatch
from headrace.tensors.gpu.queue import Queue

_SUM = record("""laplacian:Sum {
    uint32 first_block;
    uint64 terms[3];  // 0 where there are fewer
    uint64 out;
    int64 size;
}""")


def laplacian(
    queue: Queue,
    source: DeviceBatch,
    first_axis: int,
    sizes: np.ndarray,
    scales: np.ndarray,
    out: DeviceBatch,
) -> None:
    """Fill `out` with the sums of second derivatives of `source`.

    `sizes`, ``(samples, axes, axes)``, and `scales`, ``(samples, axes)``, are those of the kernel
    for the CPU.
    """
    if len(sizes) and (sizes == sizes[0]).all() and (scales == scales[0]).all():
        sizes, scales = sizes[:1], scales[:1]
    count = sizes.shape[1]
    records = np.zeros(len(out), _SUM)
    terms = []
    for axis in range(count):
        term = queue.empty(source.extents, np.float32, len(source))
        terms.append(term)
        filter_separably(
            queue, source, term, first_axis, _windows(sizes[:, axis], scales[:, axis], axis)
        )
        records["terms"][:, axis] = term.pointers
    records["out"], records["size"] = out.pointers, out.sizes()
    name = kernel("laplacian.cu", "add_terms", out.dtype)
    launch_records(queue, name, records, quotient_up(records["size"], THREADS))


def _windows(sizes: np.ndarray, scales: np.ndarray, derivative: int) -> FilterWindows:
    """Windows, scaled, of the derivative along axis number `derivative`."""
    reaches = sizes // 2
    weights = np.zeros((*sizes.shape, int(reaches.max(initial=0)) + 1), np.float32)
    for k, (own, scale) in enumerate(zip(sizes.tolist(), scales.tolist(), strict=True)):
        for axis, size in enumerate(own):
            is_own = axis == derivative
            half = window(size, is_own, scale) if is_own else window(size, False)
            weights[k, axis, : len(half)] = half
    return FilterWindows(np.ascontiguousarray(reaches), weights)
