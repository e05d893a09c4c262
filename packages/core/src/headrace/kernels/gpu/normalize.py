"""Normalisation: moments along any axes, and the linear function that they parametrise."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from headrace.kernels.cpu.normalize import needs_double
from headrace.kernels.gpu.normalize_blocks import ROW_THREADS, Blocks, in_parts, in_rows
from headrace.kernels.gpu.program import kernel
from headrace.kernels.gpu.records import THREADS
from headrace.kernels.gpu.shared import record
from headrace.tensors.gpu.batch import DeviceBatch
from headrace.tensors.gpu.queue import Queue

PARAMETERS = record("""normalize:Parameters {
    uint64 mean, scale;  // of each group, or single numbers
    int32 mean_is_single, scale_is_single;
}""")
_SAMPLE, _ROWS_SAMPLE = (
    record(f"""normalize:{name} {{
        uint64 source, out;
        normalize:Parameters parameters;
        normalize_blocks:{shape} shape;
        int32 blocks;
    }}""")
    for name, shape in (("Sample", "Shape"), ("RowsSample", "Rows"))
)


Launch = tuple[Any, ...]
"""Arguments of `Queue.launch`."""


class Parameter(NamedTuple):
    """A mean or scale on the device, one for each group ``(outer, inner)`` or for all of them."""

    addresses: np.ndarray
    """uint64 ``(samples,)``."""
    single: np.ndarray | bool
    """True if there is a single number, for all samples or for each of them."""


class HostParameter(NamedTuple):
    """Means or scales that are known on the host."""

    values: np.ndarray
    """All, one after the other."""
    shapes: list[tuple[int, ...]]
    """One a sample, or a single one for the values that all samples have in common. Each is that
    of the sample with some extents being 1, or of a single number.
    """


def mean_type(dtype: np.dtype) -> np.dtype:
    """Type of the means of data: differences are of that type."""
    return np.dtype(np.float64 if needs_double(dtype) else np.float32)


def uploaded(
    queue: Queue, given: HostParameter, dtype: np.dtype, shapes: np.ndarray, blocks: Blocks
) -> Parameter:
    """`given` on the device, spread to the groups of samples of these `shapes`."""
    values = given.values.astype(dtype, copy=False)
    groups = blocks.groups
    if len(given.shapes) == 1 and (values.size == 1 or (groups == values.size).all()):
        return Parameter(np.full(len(shapes), queue.upload(values)), values.size == 1)
    sizes = np.array([math.prod(shape) for shape in given.shapes], np.int64)
    if len(given.shapes) == 1 or ((sizes != 1) & (sizes != groups)).any():
        values = np.concatenate(_spread(given, values, shapes, blocks))
        sizes = groups
    begins = (np.cumsum(sizes) - sizes) * dtype.itemsize
    return Parameter(queue.upload(values) + begins.astype(np.uint64), sizes == 1)


def _spread(
    given: HostParameter, values: np.ndarray, shapes: np.ndarray, blocks: Blocks
) -> list[np.ndarray]:
    found, begin = [], 0
    for index, shape in enumerate(shapes.tolist()):
        own = given.shapes[index if len(given.shapes) > 1 else 0]
        size = math.prod(own)
        array = values[begin : begin + size]
        if len(given.shapes) > 1:
            begin += size
        first, last = blocks.axes
        kept = (*shape[:first], *(1,) * (last - first), *shape[last:])
        found.append(np.broadcast_to(array.reshape(own if size > 1 else ()), kept).reshape(-1))
    return found


def normalization(
    queue: Queue,
    data: DeviceBatch,
    out: DeviceBatch,
    blocks: Blocks,
    mean: Parameter,
    scale: Parameter,
    shift: float,
) -> Launch:
    """Make the launch that fills `out` with ``(data - mean) * scale + shift``; the caller queues
    it.

    `data`: integers of up to 32 bits or float32, of any shapes, not all without elements. `mean`,
    `scale`: for each group of `blocks`, of type `mean_type` and float32.
    """
    columns = blocks.columns
    samples = np.empty(len(data), _ROWS_SAMPLE if columns else _SAMPLE)
    samples["source"], samples["out"] = data.pointers, out.pointers
    parameters = samples["parameters"]
    parameters["mean"], parameters["mean_is_single"] = mean
    parameters["scale"], parameters["scale_is_single"] = scale
    if columns:
        vector = 16 // max(data.dtype.itemsize, out.dtype.itemsize)
        counts = in_rows(blocks, samples["shape"], vector, 8)
        name = kernel("normalize_rows.cu", "normalize_rows", data.dtype, out.dtype, columns)
    else:
        counts = in_parts(blocks, samples["shape"], 64, 16)
        name = kernel("normalize.cu", "normalize", data.dtype, out.dtype)
    samples["blocks"] = counts
    most = int(counts.max())
    return (
        name,
        (most * len(data), 1, 1),
        (ROW_THREADS if columns else THREADS, 1, 1),
        queue.upload(samples),
        np.int32(most),
        np.float32(shift),
    )
