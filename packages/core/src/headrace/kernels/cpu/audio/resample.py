"""Resampling of audio by a windowed sinc."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from headrace.kernels.cpu.audio import resample_loops
from headrace.kernels.cpu.audio.sinc_window import SincWindow
from headrace.kernels.cpu.audio.widening import widen

Allocate = Callable[[tuple[int, ...], np.dtype], np.ndarray]

_FLOAT = np.dtype(np.float32)


def resampled_length(length: int, in_rate: float, out_rate: float) -> int:
    """Number of samples after resampling `length` samples."""
    return int(np.ceil(length * out_rate / in_rate))


def resample(
    source: np.ndarray,
    step: float,
    window: SincWindow,
    out: np.ndarray,
    temp: Allocate,
    *,
    scaled: bool,
) -> None:
    """Fill `out` with samples at the places ``0, step, 2 * step, ...`` of `source`."""
    if not out.size:
        return
    channels = out.shape[1] if out.ndim == 2 else 1
    source = source.reshape(-1, channels)
    if (
        source.dtype != _FLOAT
        or not source.flags.c_contiguous
        or (scaled and out.dtype.kind == "u")
    ):
        wide = temp(source.shape, _FLOAT)
        if scaled:
            widen(source, out.dtype, wide)
        else:
            np.copyto(wide, source)
        source = wide
    resample_loops.resample(
        source,
        float(step),
        window.lobes,
        window.taps,
        window.weights,
        window.steps,
        scaled,
        out.reshape(-1, channels),
    )
