"""Noise: numbers that are added or drawn by levels, and pixels given one of two values."""

from __future__ import annotations

import numpy as np

from headrace.kernels.gpu.program import kernel
from headrace.kernels.gpu.records import THREADS, launch_records, quotient_up
from headrace.kernels.gpu.shared import constant, record
from headrace.tensors.gpu.batch import DeviceBatch
from headrace.tensors.gpu.queue import Queue

_EACH = constant(__name__, "EACH", 8, "uint32")
"""Elements that a thread makes."""
_SAMPLE = record("""noise:Noisy {
    uint32 first_block;
    float salt_below, pepper_below, factor;
    uint64 source, noise, out;
    int64 size, pixels, inner;
    uint64 salt, pepper;
}""")


def add_noise(queue: Queue, data: DeviceBatch, noise: DeviceBatch, out: DeviceBatch) -> None:
    """Fill `out` with the sums of `data` and `noise`, which is float32, as `cast` converts them."""
    records = _records(data, noise, out)
    _launch(queue, "add_noise", out.dtype, records)


def shot(
    queue: Queue, data: DeviceBatch, normals: DeviceBatch, factors: np.ndarray, out: DeviceBatch
) -> None:
    """Fill `out` with Poisson numbers times `factors`, as `cast` converts them.

    Rates are `data` over `factors`; `normals` are float32, as `kernels.cpu.noise.poisson` takes
    them.
    """
    records = _records(data, normals, out)
    records["factor"] = factors
    _launch(queue, "shot", out.dtype, records)


def salt_and_pepper(
    queue: Queue,
    data: DeviceBatch,
    units: DeviceBatch,
    limits: tuple[np.ndarray, np.ndarray],
    values: tuple[np.ndarray, np.ndarray],
    inner: np.ndarray,
    out: DeviceBatch,
) -> None:
    """Fill `out` with `data`, some of whose pixels are set.

    `limits`, `values`: what is below the first limit gets the first value, others below the second
    the second one: ``(samples,)`` each, values of the type of `data`.
    """
    records = _records(data, units, out)
    word = np.dtype(f"u{out.dtype.itemsize}")
    records["salt_below"], records["pepper_below"] = limits
    records["pixels"], records["inner"] = np.maximum(units.sizes(), 1), inner
    records["salt"], records["pepper"] = (value.view(word) for value in values)
    _launch(queue, "salt_and_pepper", word, records)


def _records(data: DeviceBatch, noise: DeviceBatch, out: DeviceBatch) -> np.ndarray:
    records = np.zeros(len(out), _SAMPLE)
    records["source"], records["noise"] = data.pointers, noise.pointers
    records["out"], records["size"] = out.pointers, out.sizes()
    return records


def _launch(queue: Queue, function: str, dtype: np.dtype, records: np.ndarray) -> None:
    blocks = quotient_up(records["size"], THREADS * _EACH)
    launch_records(queue, kernel("noise.cu", function, dtype), records, blocks)
