"""Tensors of independent random numbers: the device's side of `headrace.kernels.cpu.random`.

Where a seed is a `DrawSeed`, the state of a generator, they are those of
`headrace.kernels.cpu.philox_draws`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from headrace.kernels.cpu.philox_state import DrawSeed
from headrace.kernels.gpu.program import kernel
from headrace.kernels.gpu.records import THREADS, launch_records, quotient_up
from headrace.kernels.gpu.shared import constant, record
from headrace.tensors.gpu.batch import DeviceBatch
from headrace.tensors.gpu.queue import Queue

_ROUNDS = constant(__name__, "ROUNDS", 8)
"""Evaluations of a thread."""
_STATE_ROUNDS = constant(__name__, "STATE_ROUNDS", 4)
"""Elements that a thread draws out of the state of a generator."""
_WORD = 0xFFFFFFFF
_SAMPLE = record("""random:DrawnSample {
    uint32 first_block;
    uint32 number;  // of the sample in the batch
    uint64 out;
    int64 size;
    double first, second;  // low and width of a range; mean and standard deviation
    double limit, last;  // end of a range, and the number before it; not with a state
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
    bits = _bits(out.dtype, seed)
    work = np.float32 if bits == 32 else np.float64
    records = _records(out, indices)
    if type(seed) is DrawSeed:
        first, ends = (v.astype(np.float32).astype(work) for v in (low, high))
        records["first"] = first
        records["second"] = np.nextafter(ends, first) - first
    else:
        ends = high.astype(work)
        records["first"] = low
        records["second"] = high - low
        records["limit"] = ends
        records["last"] = np.nextafter(ends, low.astype(work))
    _draw(queue, out, f"Uniform{bits}", records, seed, iteration)


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
    records = _records(out, indices)
    records["first"] = _given(mean, seed)
    records["second"] = _given(stddev, seed)
    _draw(queue, out, f"Normal{_bits(out.dtype, seed)}", records, seed, iteration)


def fill_choices(
    queue: Queue,
    out: DeviceBatch,
    seed: int,
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
    seed: int,
    iteration: int,
    indices: Sequence[int],
    probability: np.ndarray,
) -> None:
    """Fill a batch with ones of these probabilities, float64 ``(samples,)``, and zeros."""
    records = _records(out, indices)
    records["threshold"] = np.rint(_given(probability, seed) * 2.0**32)
    _draw(queue, out, "Flips", records, seed, iteration)


def _given(values: np.ndarray, seed: int) -> np.ndarray:
    """Parameters, which DALI takes in the precision of float32."""
    if type(seed) is DrawSeed:
        return values.astype(np.float32).astype(np.float64)
    return values


def _bits(dtype: np.dtype, seed: int) -> int:
    """Number of random bits in a number that is drawn for elements of a type."""
    if type(seed) is DrawSeed:
        is_single = dtype == np.float32 or dtype.itemsize <= 2
    else:
        is_single = dtype in (np.float16, np.float32)
    return 32 if is_single else 53


def _records(out: DeviceBatch, indices: Sequence[int]) -> np.ndarray:
    records = np.zeros(len(out), _SAMPLE)
    records["number"] = np.arange(len(out)) if type(indices) is range else indices
    records["out"] = out.pointers
    records["size"] = out.sizes()
    return records


def _draw(
    queue: Queue, out: DeviceBatch, draw: str, records: np.ndarray, seed: int, iteration: int
) -> None:
    words: tuple[np.uint32 | np.uint64, ...]
    if type(seed) is DrawSeed:
        state = seed.at(iteration)
        name = kernel("random_state.cu", "draw_state", f"State{draw}", out.dtype)
        per_thread = _STATE_ROUNDS
        words = np.uint64(state.key), np.uint64(state.sequence), np.uint64(state.offset)
        words = *words, np.uint32(state.phase)
    else:
        name = kernel("random.cu", "draw", draw, out.dtype)
        per_thread = _ROUNDS * (2 if draw.endswith("53") else 4)
        parts = iteration, iteration >> 32, seed, seed >> 32
        words = tuple([np.uint32(part & _WORD) for part in parts])
    blocks = quotient_up(records["size"], THREADS * per_thread)
    launch_records(queue, name, records, blocks, *words)
