"""Tensors of independent random numbers: the device's side of `headrace.kernels.cpu.random`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from headrace.kernels.cpu.philox_state import DrawSeed
from headrace.kernels.gpu.program import kernel
from headrace.kernels.gpu.records import THREADS, launch_records, quotient_up
from headrace.kernels.gpu.shared import constant, record
from headrace.tensors.gpu.batch import DeviceBatch
from headrace.tensors.gpu.queue import Queue

_ROUNDS = constant(__name__, "ROUNDS", 4)
"""Elements of a thread."""
_SAMPLE = record("""random:DrawnSample {
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
    seed: DrawSeed,
    iteration: int,
    indices: Sequence[int],
    low: np.ndarray,
    high: np.ndarray,
) -> None:
    """Fill a batch uniformly from [low, high), float64 ``(samples,)``, lower and upper ends.

    Numbers of 53 bits are drawn where elements are float64 or integers, and others of 32 bits.
    `indices` are the numbers of the samples in their batch, on which draws depend.
    """
    bits = _bits(out.dtype)
    work = np.float32 if bits == 32 else np.float64
    records = _records(out, indices)
    first, ends = (v.astype(np.float32).astype(work) for v in (low, high))
    records["first"] = first
    records["second"] = np.nextafter(ends, first) - first
    _draw(queue, out, f"Uniform{bits}", records, seed, iteration)


def fill_normal(
    queue: Queue,
    out: DeviceBatch,
    seed: DrawSeed,
    iteration: int,
    indices: Sequence[int],
    mean: np.ndarray,
    stddev: np.ndarray,
) -> None:
    """Fill a batch with normal distributions of these parameters, float64 ``(samples,)``."""
    records = _records(out, indices)
    records["first"] = _as_float32(mean)
    records["second"] = _as_float32(stddev)
    _draw(queue, out, f"Normal{_bits(out.dtype)}", records, seed, iteration)


def fill_choices(
    queue: Queue,
    out: DeviceBatch,
    seed: DrawSeed,
    iteration: int,
    indices: Sequence[int],
    values: Sequence[np.ndarray],
) -> None:
    """Fill a batch with values chosen at random."""
    records = _records(out, indices)
    counts = np.array([len(v) for v in values], np.int64)
    begins = (np.cumsum(counts) - counts) * out.dtype.itemsize
    records["values"] = queue.upload(np.concatenate(values)) + begins.astype(np.uint64)
    records["choices"] = counts
    _draw(queue, out, "Choices", records, seed, iteration)


def fill_bernoulli(
    queue: Queue,
    out: DeviceBatch,
    seed: DrawSeed,
    iteration: int,
    indices: Sequence[int],
    probability: np.ndarray,
) -> None:
    """Fill a batch with ones of these probabilities, float64 ``(samples,)``, and zeros."""
    records = _records(out, indices)
    records["threshold"] = np.rint(_as_float32(probability) * 2.0**32)
    _draw(queue, out, "Flips", records, seed, iteration)


def _as_float32(values: np.ndarray) -> np.ndarray:
    """Parameters, which DALI takes in the precision of float32."""
    return values.astype(np.float32).astype(np.float64)


def _bits(dtype: np.dtype) -> int:
    """Random bits of a number that is drawn for elements of a type."""
    return 32 if dtype == np.float32 or dtype.itemsize <= 2 else 53


def _records(out: DeviceBatch, indices: Sequence[int]) -> np.ndarray:
    records = np.zeros(len(out), _SAMPLE)
    records["number"] = np.arange(len(out)) if type(indices) is range else indices
    records["out"] = out.pointers
    records["size"] = out.sizes()
    return records


def _draw(
    queue: Queue, out: DeviceBatch, draw: str, records: np.ndarray, seed: DrawSeed, iteration: int
) -> None:
    state = seed.at(iteration)
    blocks = quotient_up(records["size"], THREADS * _ROUNDS)
    words = np.uint64(state.key), np.uint64(state.sequence), np.uint64(state.offset)
    name = kernel("random.cu", "draw", draw, out.dtype)
    launch_records(queue, name, records, blocks, *words, np.uint32(state.phase))
