"""What operators that resample images have in common."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.operators.deferred import DeferredImage, pixels
from penstock.operators.image.resample_sample import OutputWindow, SampleResampler
from penstock.operators.image.resampling import Resampling
from penstock.operators.image.resized_image import ResizedImage
from penstock.operators.operator import Operator, SampleContext
from penstock.operators.schema import Spec

if TYPE_CHECKING:
    from penstock.kernels.cpu.resample_taps import AxisSampling

Plan = tuple[Sequence["AxisSampling"], Sequence[OutputWindow]]
"""How each spatial axis of a sample is resampled, and what of it is wanted."""


class ResizingOperator(Operator):
    """Base of operators that resample the spatial axes of their input.

    A sub-class calls `prepare` in its `infer` and says what happens to a sample in `plan`.
    """

    def prepare(self, data: Spec) -> Spec:
        """Get ready for inputs like `data`; the `Spec` of the output."""
        from penstock.kernels.cpu import resample

        self._kernel = resample
        self.resampler = SampleResampler(data.layout)
        self.resampling = Resampling(self, data.dtype)
        self._image = data.layout == "HWC"
        return data._replace(dtype=self.resampling.dtype)

    def plan(self, c: SampleContext, extents: tuple[int, ...]) -> Plan:
        """What happens to a sample with these spatial extents."""
        raise NotImplementedError

    def cpu(self, c: SampleContext, *inputs: np.ndarray | DeferredImage) -> Any:
        data = inputs[0]
        resampler, resampling = self.resampler, self.resampling
        axes, windows = self.plan(c, resampler.spatial(data.shape))
        if self._copies(data, axes, windows):
            return pixels(data)
        out = c.empty(resampler.out_shape(data.shape, windows), resampling.numpy_dtype)
        if self._image:
            self._resized(c, data, axes, windows).write(out)
        else:
            resampler.run(c, pixels(data), axes, windows, out, resampling.rounds_to)
        return out

    def defer(self, c: SampleContext, *inputs: np.ndarray | DeferredImage) -> Any:
        data = inputs[0]
        axes, windows = self.plan(c, data.shape[:2])
        if self._copies(data, axes, windows):
            return data
        return self._resized(c, data, axes, windows)

    def _copies(
        self,
        data: np.ndarray | DeferredImage,
        axes: Sequence[AxisSampling],
        windows: Sequence[OutputWindow],
    ) -> bool:
        """Whether the output is the input."""
        return data.dtype == self.resampling.numpy_dtype and all(
            axis.copies and window == (0, axis.out_size, 1)
            for axis, window in zip(axes, windows, strict=True)
        )

    def _resized(
        self,
        c: SampleContext,
        data: np.ndarray | DeferredImage,
        axes: Sequence[AxisSampling],
        windows: Sequence[OutputWindow],
    ) -> ResizedImage:
        resampling = self.resampling
        return ResizedImage(
            c, self._kernel, data, axes, windows, resampling.numpy_dtype, resampling.rounds_to
        )
