"""Resample whole samples of any layout: planes, sequences, volumes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import closing
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from headrace.kernels.cpu.resample_taps import PlannedAxis
    from headrace.operators.support.operator import SampleContext
    from headrace.operators.support.video.lazy_clip import LazyClip


class SampleResampler:
    """Resamples arrays of one layout along their spatial axes."""

    __slots__ = ("_kernel", "channels_last", "first", "spatial_ndim")

    def __init__(self, layout: str) -> None:
        from headrace.kernels.cpu import resample

        self._kernel: Any = resample
        self.first = min(layout.find(letter) for letter in "DHW" if letter in layout)
        """Position of the first spatial axis."""
        self.spatial_ndim = 3 if "D" in layout else 2
        self.channels_last = layout.endswith("C")

    def run(
        self,
        c: SampleContext,
        source: np.ndarray,
        axes: Sequence[PlannedAxis],
        antialias: bool,
        out: np.ndarray,
        rounds_to: np.dtype | None,
    ) -> None:
        """Fill `out`, contiguous memory for the wanted pixels of `axes`, from `source`."""
        if not out.size:
            return
        if not self.channels_last:
            source, out = source[..., None], out[..., None]
        taps = self._taps(axes, antialias)
        rows, columns = taps[-2:]
        for outer in product(*map(range, source.shape[: self.first])):
            if len(axes) == 3:
                self._volume(c, source[outer], taps, out[outer], rounds_to)
            else:
                self._kernel.resample_image(
                    source[outer], 0, 0, rows, columns, out[outer], c.temp, rounds_to=rounds_to
                )

    def run_clip(
        self,
        c: SampleContext,
        clip: LazyClip,
        axes: Sequence[PlannedAxis],
        antialias: bool,
        out: np.ndarray,
        rounds_to: np.dtype | None,
    ) -> None:
        """Do the same with frames that are not there yet: what filters see of them is asked for."""
        rows, columns = self._taps(axes, antialias)
        with closing(clip.frames()) as frames:
            for frame, places in frames:
                seen = frame.region(rows.low, columns.low, rows.high, columns.high)
                for place in places:
                    self._kernel.resample_image(
                        *(seen, rows.low, columns.low, rows, columns, out[place], c.temp),
                        rounds_to=rounds_to,
                    )

    def _taps(self, axes: Sequence[PlannedAxis], antialias: bool) -> list[Any]:
        last = len(axes) - 1
        return [
            self._kernel.planned_taps(axis, 0, axis[6], antialias, stepwise=k != last)
            for k, axis in enumerate(axes)
        ]

    def _volume(
        self,
        c: SampleContext,
        source: np.ndarray,
        taps: Sequence[Any],
        out: np.ndarray,
        rounds_to: np.dtype | None,
    ) -> None:
        """One volume, (D, H, W, C): slices are blended along the depth first, then resampled."""
        slices, rows, columns = taps
        image = None
        for z, (first, weights) in enumerate(zip(slices.first, slices.weights, strict=True)):
            single = np.flatnonzero(weights)
            if len(single) == 1:
                taken = source[first + single[0]]
            else:
                if image is None:
                    extents = source.shape[1:]
                    flat = np.ascontiguousarray(source).reshape(len(source), math.prod(extents))
                    image = c.temp(extents, np.float32)
                self._kernel.blend_slices(flat, int(first), weights, image.reshape(-1))
                taken = image
            self._kernel.resample_image(
                taken, 0, 0, rows, columns, out[z], c.temp, rounds_to=rounds_to
            )
