"""Power spectra along an axis."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from headrace.kernels.cpu.spectrogram import Framing, Memory, SpectrumPlan
from headrace.tensors.rows import Rows


@lru_cache(maxsize=64)
def _plan(taken: int, length: int, step: int, squared: bool) -> SpectrumPlan:
    window = np.ones(taken, np.float32)
    return SpectrumPlan(Framing(window, step, center=False, reflect=False), length, squared=squared)


def power_spectrum(
    data: np.ndarray, axis: int, length: int, out: np.ndarray, memory: Memory, *, squared: bool
) -> None:
    """Fill `out` with the power spectrum of `data` along `axis`."""
    if out.size == 0:
        return
    extent = data.shape[axis]
    if extent == 0:
        out[...] = 0
        return
    plan = _plan(min(extent, length), length, extent, squared)
    rows = np.ascontiguousarray(np.moveaxis(data, axis, -1))
    moved = np.moveaxis(out, axis, -1)
    spectra = out if axis == data.ndim - 1 else memory(moved.shape, np.float32)
    count = math.prod(moved.shape[:-1])
    whole = Rows.of_array(spectra.reshape(1, count, -1))
    signal = Rows.of_array(rows.reshape(1, -1))
    plan.write(signal, np.array([count]), whole, memory, time_first=True)
    if spectra is not out:
        moved[...] = spectra
