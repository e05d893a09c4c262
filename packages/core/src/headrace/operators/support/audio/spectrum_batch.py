"""Spectrograms on the GPU that are not computed yet: as `lazy_spectrum`, for a batch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headrace.kernels.gpu import spectrogram as _kernels
from headrace.tensors.gpu.batch import DeviceBatch, LazyBatch, same_shapes
from headrace.tensors.gpu.queue import Queue
from headrace.tensors.gpu.tracked import empty_beside

if TYPE_CHECKING:
    from headrace.kernels.cpu.decibels import DecibelScale
    from headrace.kernels.gpu.spectrogram import DeviceBands, DevicePlan


class SpectrumBatch(LazyBatch):
    """Spectra of a batch of signals that one launch is to compute.

    `signals`: float32, with a single extent above 1. `frame_counts`: int64 ``(samples,)``, at least
    1, or ``(1,)`` where all signals are as long.
    """

    __slots__ = (
        "_uniform",
        "bands",
        "dtype",
        "frame_counts",
        "plan",
        "shapes",
        "signals",
        "time_first",
    )

    def __init__(
        self,
        plan: DevicePlan,
        signals: DeviceBatch,
        frame_counts: np.ndarray,
        *,
        time_first: bool,
        bands: DeviceBands | None = None,
    ) -> None:
        self.plan = plan
        self.signals = signals
        self.frame_counts = frame_counts
        self.time_first = time_first
        self.bands = bands
        rows = plan.plan.bins if bands is None else bands.sums
        self._uniform: tuple[int, int] | None = None
        if len(frame_counts) == 1:
            count = int(frame_counts[0])
            self._uniform = (count, rows) if time_first else (rows, count)
            self.shapes = same_shapes(self._uniform, len(signals))
        else:
            self.shapes = empty_beside((len(frame_counts), 2), np.int64, frame_counts)
            time = 0 if time_first else 1
            self.shapes[:, time], self.shapes[:, 1 - time] = frame_counts, rows
        self.dtype = np.dtype(np.float32)

    @property
    def uniform_shape(self) -> tuple[int, ...] | None:
        """The shape that all samples are known to have."""
        return self._uniform

    def with_bands(self, bands: DeviceBands) -> SpectrumBatch:
        """The lazy batch followed by a filter bank; there must be none yet."""
        return SpectrumBatch(
            self.plan, self.signals, self.frame_counts, time_first=self.time_first, bands=bands
        )

    def write(
        self,
        queue: Queue,
        out: DeviceBatch,
        scale: DecibelScale | None = None,
        largest: np.ndarray | None = None,
    ) -> None:
        """Fill `out`, in decibels where `scale` is given; `largest` as of `write_spectrograms`."""
        _kernels.write_spectrograms(
            queue,
            self.plan,
            self.signals,
            self.frame_counts,
            out,
            time_first=self.time_first,
            bands=self.bands,
            scale=scale,
            largest=largest,
        )

    def materialise(self, queue: Queue) -> DeviceBatch:
        """The samples in device memory: one launch."""
        out = queue.empty(self.extents, self.dtype, len(self))
        self.write(queue, out)
        return out
