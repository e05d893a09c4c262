"""Moments along any axes, and what data is normalised by according to them.

Every sum is taken in an order that only shapes decide, so that results are the same each time.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from headrace.kernels.gpu.normalize import Parameter, mean_type
from headrace.kernels.gpu.normalize_blocks import MOST_RUNS, ROW_THREADS, Blocks, in_parts, in_rows
from headrace.kernels.gpu.program import kernel
from headrace.kernels.gpu.records import THREADS, launch_evenly
from headrace.kernels.gpu.shared import record
from headrace.tensors.gpu.batch import DeviceBatch
from headrace.tensors.gpu.queue import Queue

_MANY_PARTS = 8
"""Parts of a group from which on a whole warp puts them together."""
MOMENTS_BYTES = 24
_FLOAT_BYTES = 4
_SAMPLE, _ROWS_SAMPLE = (
    # Moments are (outer, chunks, inner or columns).
    record(f"""normalize_moments:{name} {{
        uint64 source, moments;
        normalize_blocks:{shape} shape;
        int32 blocks;
    }}""")
    for name, shape in (("Sample", "Shape"), ("RowsSample", "Rows"))
)
_MERGE = record("""normalize_moments:Merge {
    uint64 parts, out;  // (outer, count, inner) and (outer, inner)
    int64 outer, count, inner;
}""")
_FINISH = record(f"""normalize_moments:Finish {{
    uint64 parts;  // (kept, count, inner)
    uint64 mean, factor;  // to be written, (outer, inner); 0 for none
    uint64 centre;  // a given mean, of the type of `mean`; 0 for none
    int64 outer, count, inner;
    // Extents that make up `outer`, outermost first; where all are kept, none.
    int64 runs[{MOST_RUNS}];
    int32 run_count;
    int32 kept_runs;  // a bit for each run whose positions have moments of their own
    int32 centre_is_single;  // else it is (outer, inner)
}}""")


class Moments(NamedTuple):
    """Moments of parts of the groups of each sample, on the device: ``(kept, count, inner)``."""

    addresses: np.ndarray
    """uint64 ``(samples,)``."""
    counts: np.ndarray
    """Parts of each group."""


def moments(queue: Queue, data: DeviceBatch, blocks: Blocks, *, batch: bool) -> Moments:
    """Moments along the reduced axes of `blocks`."""
    found = _moments_of_chunks(queue, data, blocks)
    if blocks.runs or batch:
        found = _merged(queue, found, blocks.outer, found.counts, blocks.inner)
    extents = [extent for extent, _ in blocks.runs]
    for run in range(len(blocks.runs) - 1, -1, -1):
        if blocks.runs[run][1]:
            before = _product(extents[:run], len(data))
            behind = _product(extents[run + 1 :], len(data)) * blocks.inner
            found = _merged(queue, found, before, extents[run], behind)
            del extents[run]
    if batch:
        groups = _product(extents, len(data)) if blocks.runs else blocks.outer
        one = np.ones(1, np.int64)
        all_samples = Moments(found.addresses[:1], one * len(data))
        shared = _merged(queue, all_samples, one, all_samples.counts, (groups * blocks.inner)[:1])
        addresses = np.broadcast_to(shared.addresses, len(data))
        found = Moments(addresses, np.broadcast_to(shared.counts, len(data)))
    return found


def _product(extents: list[np.ndarray], count: int) -> np.ndarray:
    found = np.ones(count, np.int64)
    for extent in extents:
        found = found * extent
    return found


def _moments_of_chunks(queue: Queue, data: DeviceBatch, blocks: Blocks) -> Moments:
    columns = blocks.columns
    samples = np.empty(len(data), _ROWS_SAMPLE if columns else _SAMPLE)
    if columns:
        counts = in_rows(blocks, samples["shape"], 16 // data.dtype.itemsize, 16)
        name = kernel("normalize_moments_rows.cu", "moments_of_rows", data.dtype, columns)
    else:
        counts = in_parts(blocks, samples["shape"], 256, 32)
        name = kernel("normalize_moments.cu", "moments", data.dtype)
    chunks = samples["shape"]["chunks"].astype(np.int64)
    addresses = allocated(queue, blocks.groups * chunks)
    samples["source"], samples["moments"], samples["blocks"] = data.pointers, addresses, counts
    most = int(counts.max())
    launch_evenly(queue, name, samples, most, threads=ROW_THREADS if columns else THREADS)
    return Moments(addresses, chunks)


def _merged(
    queue: Queue, parts: Moments, outer: np.ndarray, count: np.ndarray, inner: np.ndarray
) -> Moments:
    """One part for each group, of ``(outer, count, inner)`` parts."""
    if (count == 1).all():
        return Moments(parts.addresses, count)
    samples = np.empty(len(outer), _MERGE)
    samples["parts"] = parts.addresses
    samples["out"] = addresses = allocated(queue, outer * inner)
    samples["outer"], samples["count"], samples["inner"] = outer, count, inner
    lanes = 32 if count.max() >= _MANY_PARTS else 1
    most = -(-int((outer * inner).max()) * lanes // THREADS)
    launch_evenly(queue, kernel("normalize_finish.cu", "merge_moments", lanes), samples, most)
    return Moments(addresses, np.ones_like(count))


def estimated(
    queue: Queue,
    dtype: np.dtype,
    blocks: Blocks,
    parts: Moments,
    mean: Parameter | None,
    factor: Parameter | None,
    *,
    ddof: int,
    epsilon: float,
    scale: float,
) -> tuple[Parameter, Parameter]:
    """Means, and ``scale`` divided by standard deviations, where they are not given."""
    samples = np.zeros(len(blocks.outer), _FINISH)
    groups = blocks.groups
    samples["parts"], samples["count"] = parts.addresses, parts.counts
    samples["outer"], samples["inner"] = blocks.outer, blocks.inner
    samples["run_count"] = len(blocks.runs)
    for run, (extent, reduced) in enumerate(blocks.runs):
        samples["runs"][:, run] = extent
        samples["kept_runs"] |= (not reduced) << run
    mean, factor = place_parameters(queue, samples, blocks, mean_type(dtype), mean, factor)
    lanes = 32 if parts.counts.max() >= _MANY_PARTS else 1
    most = -(-int(groups.max()) * lanes // THREADS)
    name = kernel("normalize_finish.cu", "finish_moments", mean_type(dtype), lanes)
    numbers = np.float64(ddof), np.float64(epsilon), np.float64(scale)
    launch_evenly(queue, name, samples, most, *numbers)
    return mean, factor


def place_parameters(
    queue: Queue,
    samples: np.ndarray,
    blocks: Blocks,
    dtype: np.dtype,
    mean: Parameter | None,
    factor: Parameter | None,
) -> tuple[Parameter, Parameter]:
    """Give means of type `dtype` and factors that are not given a place, and tell `samples`."""
    if mean is None:
        samples["mean"] = addresses = allocated(queue, blocks.groups, dtype.itemsize)
        mean = Parameter(addresses, False)
    else:
        samples["centre"], samples["centre_is_single"] = mean
    if factor is None:
        samples["factor"] = addresses = allocated(queue, blocks.groups, _FLOAT_BYTES)
        factor = Parameter(addresses, False)
    return mean, factor


def allocated(queue: Queue, counts: np.ndarray, itemsize: int = MOMENTS_BYTES) -> np.ndarray:
    """Addresses of scratch memory for so many items of each sample, one after the other."""
    ends = np.cumsum(counts) * itemsize
    begins = ends - counts * itemsize
    return np.uint64(queue.scratch(int(ends[-1]))) + begins.astype(np.uint64)
