"""Spectrograms that are not computed yet.

`spectrogram`, `mel_filter_bank` and `to_decibels` one after another, where nothing else reads
what lies between them, are one pass over the signal: each adds its step to a lazy value, which
is computed when its numbers are read. The numbers are those of one operator after the other,
bit for bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from headrace.operators.support.lazy_value import LazyValue
from headrace.tensors.rows import Rows, pack_rows

if TYPE_CHECKING:
    from headrace.kernels.cpu.bands import Bands
    from headrace.kernels.cpu.decibels import DecibelScale
    from headrace.kernels.cpu.spectrogram import SpectrumPlan
    from headrace.operators.support.operator import ChunkContext


class LazySpectrum(LazyValue):
    """Spectra of signals that are not computed yet.

    Attributes
    ----------
    bands
        The filter bank that follows, if any. Who is handed the value, alone, may add one.

    `signals`: float32 with a single extent above 1. `frame_counts`: int64 ``(signals,)``, at least
    1.
    """

    __slots__ = ("_context", "_frame_counts", "_plan", "_signals", "bands", "time_first")

    def __init__(
        self,
        context: ChunkContext,
        plan: SpectrumPlan,
        signals: Rows,
        frame_counts: np.ndarray,
        time_first: bool,
    ) -> None:
        self._context = context
        self._plan = plan
        self._signals = signals
        self._frame_counts = frame_counts
        self.time_first = time_first
        self.bands: Bands | None = None

    @property
    def bins(self) -> int:
        """Number of frequencies of the spectra."""
        return self._plan.bins

    @property
    def shapes(self) -> np.ndarray:
        """Those of the spectrograms, as they are to be now, int64 ``(signals, 2)``."""
        rows = self._plan.bins if self.bands is None else self.bands.sums
        shapes = np.full((len(self._frame_counts), 2), rows, np.int64)
        shapes[:, 0 if self.time_first else 1] = self._frame_counts
        return shapes

    def subset(self, kept: Sequence[int]) -> LazySpectrum:
        """The same for some of the signals."""
        counts = self._frame_counts[list(kept)]
        made = LazySpectrum(
            self._context, self._plan, self._signals.subset(kept), counts, self.time_first
        )
        made.bands = self.bands
        return made

    def materialise(self, c: ChunkContext) -> Rows:
        """The spectrograms as they are to be now."""
        out = c.empty(self.shapes, np.dtype(np.float32))
        self.write(out)
        return out

    def write(self, out: Rows, scale: DecibelScale | None = None) -> None:
        """Fill `out` with the spectrograms, or with their decibels."""
        self._plan.write(
            self._signals,
            self._frame_counts,
            out,
            self._context.temp,
            time_first=self.time_first,
            bands=self.bands,
            scale=scale,
        )


def numbers(context: ChunkContext, data: Rows | LazySpectrum) -> Rows:
    """`data`, computed now if it is a lazy value."""
    if isinstance(data, Rows):
        return data
    found = pack_rows(data.shapes, np.dtype(np.float32), context.temp)
    data.write(found)
    return found
