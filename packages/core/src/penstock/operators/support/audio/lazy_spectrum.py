"""Spectrograms that are not computed yet.

`spectrogram`, `mel_filter_bank` and `to_decibels` behind one another, where nothing else reads
what lies between them, are one pass over the signal: each adds to a lazy value what it does, and
whoever wants numbers has it computed. The numbers are those of one operator after the other,
bit for bit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from penstock.operators.support.lazy_value import LazyValue

if TYPE_CHECKING:
    from penstock.kernels.cpu.bands import Bands
    from penstock.kernels.cpu.decibels import DecibelScale
    from penstock.kernels.cpu.spectrogram import SpectrumPlan
    from penstock.operators.support.operator import SampleContext


class LazySpectrum(LazyValue):
    """What is to become of one signal.

    Parameters
    ----------
    context
        Where scratch memory comes from.
    plan
        How the spectra are found.
    signal
        float32 ``(n,)``.
    frame_count
        Number of frames, at least 1.
    time_first
        Whether a frame's values are neighbours.

    Attributes
    ----------
    bands
        The filter bank that follows, if any. Who is handed the value, alone, may add one.
    """

    __slots__ = ("_context", "_frame_count", "_plan", "_signal", "bands", "time_first")

    def __init__(
        self,
        context: SampleContext,
        plan: SpectrumPlan,
        signal: np.ndarray,
        frame_count: int,
        time_first: bool,
    ) -> None:
        self._context = context
        self._plan = plan
        self._signal = signal
        self._frame_count = frame_count
        self.time_first = time_first
        self.bands: Bands | None = None

    @property
    def bins(self) -> int:
        """Number of frequencies of the spectra."""
        return self._plan.bins

    @property
    def shape(self) -> tuple[int, int]:
        """That of the spectrogram, as it is to be now."""
        rows = self._plan.bins if self.bands is None else self.bands.sums
        return (self._frame_count, rows) if self.time_first else (rows, self._frame_count)

    def materialise(self, c: SampleContext) -> np.ndarray:
        """The spectrogram as it is to be now."""
        out = c.empty(self.shape, np.float32)
        self.write(out)
        return out

    def write(self, out: np.ndarray, scale: DecibelScale | None = None) -> None:
        """Fill `out` with the spectrogram, or with its decibels."""
        self._plan.write(
            self._signal,
            out,
            self._context.temp,
            time_first=self.time_first,
            bands=self.bands,
            scale=scale,
        )


def numbers(context: SampleContext, data: np.ndarray | LazySpectrum) -> np.ndarray:
    """`data`, computed now if it is lazy."""
    if isinstance(data, np.ndarray):
        return data
    found = context.temp(data.shape, np.float32)
    data.write(found)
    return found
