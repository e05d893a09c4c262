"""Tensors of independent random numbers: the device's side of `penstock.kernels.cpu.random`.

Seeds that are the state of a generator go to `penstock.kernels.gpu.random_state`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from penstock.kernels.cpu.philox_state import DrawSeed
from penstock.kernels.gpu import random_state
from penstock.kernels.gpu.program import kernel
from penstock.kernels.gpu.records import THREADS, launch_records, quotient_up
from penstock.kernels.gpu.shared import constant, record
from penstock.tensors.gpu.batch import DeviceBatch
from penstock.tensors.gpu.queue import Queue

_ROUNDS = constant(__name__, "ROUNDS", 8)
"""Evaluations of a thread."""
_WORD = 0xFFFFFFFF
_SAMPLE = record("""random:DrawnSample {
    uint32 first_block;
    uint32 number;  // of the sample in the batch
    uint64 out;
    int64 size;
    double first, second;  // low and width of a range; mean and standard deviation
    double limit, last;  // end of a range, and the number before it
    const void* values;  // to choose from
    uint32 choices;
    uint64 threshold;  // words below it are ones
}""")


def fill_uniform(
    queue: Queue,
    out: DeviceBatch,
    seed: int,
    iteration: int,
    indices: Sequence[int],
    low: np.ndarray,
    high: np.ndarray,
) -> None:
    """Fill a batch uniformly from [low, high), float64 ``(samples,)``, lower and upper ends.

    Numbers of 53 bits are drawn where elements are float64 or integers, and others of 32 bits.
    `indices` are the numbers of the samples in their batch, on which draws depend.
    """
    if type(seed) is DrawSeed:
        random_state.fill_uniform(queue, out, seed.at(iteration), indices, low, high)
        return
    single = _is_single(out.dtype)
    work = np.float32 if single else np.float64
    records = _records(out, indices)
    ends = high.astype(work)
    records["first"] = low
    records["second"] = high - low
    records["limit"] = ends
    records["last"] = np.nextafter(ends, low.astype(work))
    _draw(queue, out, "Uniform32" if single else "Uniform53", records, seed, iteration)


def fill_normal(
    queue: Queue,
    out: DeviceBatch,
    seed: int,
    iteration: int,
    indices: Sequence[int],
    mean: np.ndarray,
    stddev: np.ndarray,
) -> None:
    """Fill a batch with normal distributions of these parameters, float64 ``(samples,)``."""
    if type(seed) is DrawSeed:
        random_state.fill_normal(queue, out, seed.at(iteration), indices, mean, stddev)
        return
    records = _records(out, indices)
    records["first"] = mean
    records["second"] = stddev
    _draw(queue, out, "Normal32" if _is_single(out.dtype) else "Normal53", records, seed, iteration)


def fill_choices(
    queue: Queue,
    out: DeviceBatch,
    seed: int,
    iteration: int,
    indices: Sequence[int],
    values: Sequence[np.ndarray],
) -> None:
    """Fill a batch with values chosen at random.

    Parameters
    ----------
    values
        What to choose from, of the batch's element type and not empty: one array for all samples,
        or one a sample.
    """
    if type(seed) is DrawSeed:
        random_state.fill_choices(queue, out, seed.at(iteration), indices, values)
        return
    records = _records(out, indices)
    counts = np.array([len(v) for v in values], np.int64)
    begins = (np.cumsum(counts) - counts) * out.dtype.itemsize
    records["values"] = queue.upload(np.concatenate(values)) + begins.astype(np.uint64)
    records["choices"] = counts
    _draw(queue, out, "Choices", records, seed, iteration)


def fill_bernoulli(
    queue: Queue,
    out: DeviceBatch,
    seed: int,
    iteration: int,
    indices: Sequence[int],
    probability: np.ndarray,
) -> None:
    """Fill a batch with ones of these probabilities, float64 ``(samples,)``, and zeros."""
    if type(seed) is DrawSeed:
        random_state.fill_bernoulli(queue, out, seed.at(iteration), indices, probability)
        return
    records = _records(out, indices)
    records["threshold"] = np.rint(probability * 2.0**32)
    _draw(queue, out, "Flips", records, seed, iteration)


def _is_single(dtype: np.dtype) -> bool:
    return dtype in (np.float16, np.float32)


def _records(out: DeviceBatch, indices: Sequence[int]) -> np.ndarray:
    records = np.zeros(len(out), _SAMPLE)
    records["number"] = np.arange(len(out)) if type(indices) is range else indices
    records["out"] = out.pointers
    records["size"] = out.sizes()
    return records


def _draw(
    queue: Queue, out: DeviceBatch, draw: str, records: np.ndarray, seed: int, iteration: int
) -> None:
    per_thread = _ROUNDS * (2 if draw.endswith("53") else 4)
    launch_records(
        queue,
        kernel("random.cu", "draw", draw, out.dtype),
        records,
        quotient_up(records["size"], THREADS * per_thread),
        np.uint32(iteration & _WORD),
        np.uint32((iteration >> 32) & _WORD),
        np.uint32(seed & _WORD),
        np.uint32((seed >> 32) & _WORD),
    )
