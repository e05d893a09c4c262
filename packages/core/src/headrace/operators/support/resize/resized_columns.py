"""Resized images that instructions are to compute, as `ResizedImage` stands for one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from headrace.operators.support.compiled_steps import (
        CompiledStepContext,
        SampleColumns,
        WindowWords,
        Word,
    )
    from headrace.operators.support.resize.resampling import Resampling

_NEVER: tuple[Word, ...] = (-1, -1, 0, 0.0)
Tables = Sequence[tuple[np.ndarray, np.ndarray] | None]
"""Means and factors of images with one channel, with two, ..."""


class ResizedColumns:
    """Resized images, HWC, that have no instruction yet.

    Attributes
    ----------
    pixels
        Columns of their extents; they have no memory.
    """

    def __init__(
        self,
        c: CompiledStepContext,
        source: SampleColumns,
        resampling: Resampling,
    ) -> None:
        from headrace.kernels.cpu import resample_steps

        self._source = source
        self._resampling = resampling
        self.pixels = c.steps.samples(resampling.numpy_dtype, 3)
        self._axes = c.planned(2 * resample_steps.NUMBERS + 1, self.pixels)
        c.steps.are_small = True

    def materialise(self, c: CompiledStepContext) -> SampleColumns:
        """Columns of the images, for which an instruction is added."""
        from headrace.kernels.cpu.pixel_steps import MOST_CHANNELS

        unused = np.zeros(MOST_CHANNELS, np.float32)
        tables = [(unused, unused)] * MOST_CHANNELS
        return self._resample(c, None, _NEVER, tables, normalizes=False, planar=False)

    def normalized(
        self,
        c: CompiledStepContext,
        window: WindowWords | None,
        mirror: Sequence[Word],
        tables: Tables,
        *,
        planar: bool,
    ) -> SampleColumns:
        """Columns of the output of `c`: windows of the images, mirrored, normalised."""
        return self._resample(c, window, mirror, tables, normalizes=True, planar=planar)

    def _resample(
        self,
        c: CompiledStepContext,
        window: WindowWords | None,
        mirror: Sequence[Word],
        tables: Tables,
        *,
        normalizes: bool,
        planar: bool,
    ) -> SampleColumns:
        from headrace.kernels.cpu import resample_images, resample_steps
        from headrace.operators.support.windows.cut import planned_window

        anchors, extents = (-1, -1) if window is None else planned_window(c, self.pixels, window)
        filters, radii = resample_images.filters()
        out = c.out()
        finish = resample_images.Finish.of(
            out.dtype, self._resampling.rounds_to, normalizes=normalizes, planar=planar
        )
        memory, size = c.steps.bytes()
        words: list[Word] = [*self._source.words, *out.words[:2], self._axes, anchors, extents]
        words += (memory, size, self._resampling.antialias, *mirror, *finish)
        for table in tables:
            words += (0, 0, 0, 0) if table is None else table
        words += (*filters, np.array(radii, np.float32))
        c.steps.add(resample_steps.plan, resample_steps.resampling(out.dtype), words)
        return out
