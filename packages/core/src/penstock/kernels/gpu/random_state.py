"""Random tensors out of the state of a generator: the device's side of `philox_draws`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from penstock.kernels.gpu.program import kernel
from penstock.kernels.gpu.records import THREADS, launch_records, quotient_up
from penstock.kernels.gpu.shared import constant, record
from penstock.tensors.gpu.batch import DeviceBatch
from penstock.tensors.gpu.queue import Queue

if TYPE_CHECKING:
    from penstock.kernels.cpu.philox_state import PhiloxState

_ROUNDS = constant(__name__, "ROUNDS", 4)
"""Elements that a thread draws."""
_SAMPLE = record("""random_state:StateSample {
    uint32 first_block;
    uint32 number;  // of the sample in the batch
    uint64 out;
    int64 size;
    double first, second;  // low and width of a range; mean and standard deviation
    const void* values;  // to choose from
    uint32 choices;
    uint64 threshold;  // words below it are ones
}""")


def fill_uniform(
    queue: Queue,
    out: DeviceBatch,
    state: PhiloxState,
    indices: Sequence[int],
    low: np.ndarray,
    high: np.ndarray,
) -> None:
    """Fill a batch uniformly from [low, high), float64 ``(samples,)``, lower and upper ends."""
    records = _records(out, indices)
    single = _is_single(out.dtype)
    low32, high32 = low.astype(np.float32), high.astype(np.float32)
    records["first"] = low32
    if single:
        records["second"] = np.nextafter(high32, low32) - low32
    else:
        first, last = low32.astype(np.float64), high32.astype(np.float64)
        records["second"] = np.nextafter(last, first) - first
    _draw(queue, out, "StateUniform32" if single else "StateUniform53", records, state)


def fill_normal(
    queue: Queue,
    out: DeviceBatch,
    state: PhiloxState,
    indices: Sequence[int],
    mean: np.ndarray,
    stddev: np.ndarray,
) -> None:
    """Fill a batch with normal distributions of these parameters, float64 ``(samples,)``."""
    records = _records(out, indices)
    records["first"] = mean.astype(np.float32)
    records["second"] = stddev.astype(np.float32)
    _draw(
        queue,
        out,
        "StateNormal32" if _is_single(out.dtype) else "StateNormal53",
        records,
        state,
    )


def fill_choices(
    queue: Queue,
    out: DeviceBatch,
    state: PhiloxState,
    indices: Sequence[int],
    values: Sequence[np.ndarray],
) -> None:
    """Fill a batch with values chosen at random: one array for all samples, or one a sample."""
    records = _records(out, indices)
    counts = np.array([len(v) for v in values], np.int64)
    begins = (np.cumsum(counts) - counts) * out.dtype.itemsize
    records["values"] = queue.upload(np.concatenate(values)) + begins.astype(np.uint64)
    records["choices"] = counts
    _draw(queue, out, "StateChoices", records, state)


def fill_bernoulli(
    queue: Queue,
    out: DeviceBatch,
    state: PhiloxState,
    indices: Sequence[int],
    probability: np.ndarray,
) -> None:
    """Fill a batch with ones of these probabilities, float64 ``(samples,)``, and zeros."""
    records = _records(out, indices)
    records["threshold"] = np.rint(probability.astype(np.float32).astype(np.float64) * 2.0**32)
    _draw(queue, out, "StateFlips", records, state)


def _is_single(dtype: np.dtype) -> bool:
    """Whether numbers of the precision of float32 are drawn for elements of this type."""
    return dtype == np.float32 or dtype.itemsize <= 2


def _records(out: DeviceBatch, indices: Sequence[int]) -> np.ndarray:
    records = np.zeros(len(out), _SAMPLE)
    records["number"] = indices
    records["out"] = out.pointers
    records["size"] = out.sizes()
    return records


def _draw(
    queue: Queue, out: DeviceBatch, draw: str, records: np.ndarray, state: PhiloxState
) -> None:
    launch_records(
        queue,
        kernel("random_state.cu", "draw_state", draw, out.dtype),
        records,
        quotient_up(records["size"], THREADS * _ROUNDS),
        np.uint64(state.key),
        np.uint64(state.sequence),
        np.uint64(state.offset),
        np.uint32(state.phase),
    )
