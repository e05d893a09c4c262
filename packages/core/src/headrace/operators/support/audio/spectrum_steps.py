"""Spectra that instructions are to compute, as `LazySpectrum` stands for those of a chunk."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.kernels.cpu.bands import NO_BANDS
from headrace.kernels.cpu.decibels import NO_DECIBELS

if TYPE_CHECKING:
    from headrace.kernels.cpu.bands import Bands
    from headrace.kernels.cpu.decibels import DecibelScale
    from headrace.kernels.cpu.spectrogram import SpectrumPlan
    from headrace.operators.support.compiled_steps import CompiledStepContext, SampleColumns


class SpectrumSteps:
    """Spectra of signals that have no instruction yet.

    Attributes
    ----------
    bands
        The filter bank that follows, if any.
    """

    def __init__(self, plan: SpectrumPlan, signals: SampleColumns, *, time_first: bool) -> None:
        self.plan = plan
        self._signals = signals
        self._time_first = time_first
        self.bands: Bands | None = None

    def materialise(
        self, c: CompiledStepContext, scale: DecibelScale | None = None
    ) -> SampleColumns:
        """Columns of the spectrograms, or of their decibels, for which an instruction is added."""
        from headrace.kernels.cpu import spectrogram_steps as steps

        plan, frames, bands = self.plan, self.plan.frames, self.bands or NO_BANDS
        assert plan.tables is not None
        window, length, size, *tables = plan.tables
        numbers = plan.scratch_numbers(bands)
        out = c.out()
        rows = plan.bins if self.bands is None else bands.sums
        reference, smallest, factor = map(float, scale or NO_DECIBELS)
        words: list[Any] = [*self._signals.words, *out.words, self._time_first, rows, frames.center]
        words += [frames.step, frames.length, frames.start, frames.reflect, plan.squared]
        words += [scale is not None, reference, smallest, factor, c.temp(numbers), numbers]
        words += [length, size, window, *tables, *bands]
        c.steps.add(steps.plan, steps.carry, words)
        return out
