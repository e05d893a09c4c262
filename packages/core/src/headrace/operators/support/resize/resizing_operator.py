"""Shared code of operators that resample images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.kernels.gpu import resample_axes as _resample_axes
from headrace.kernels.plan import resize_axes as _plan
from headrace.operators.support.lazy_image import LazyImage, LazyPixels
from headrace.operators.support.operator import (
    BatchContext,
    ChunkContext,
    SampleContext,
    SampleOperator,
)
from headrace.operators.support.planning import PlanContext, Planned, Samples, plan_batch
from headrace.operators.support.resize.image_groups import write_group
from headrace.operators.support.resize.resampling import Resampling
from headrace.operators.support.resize.resized_batch import ResizedBatch
from headrace.operators.support.resize.resized_columns import ResizedColumns
from headrace.operators.support.resize.resized_image import ResizedImage
from headrace.operators.support.resize.sample import SampleResampler
from headrace.operators.support.schema import Spec
from headrace.operators.support.video.lazy_clip import LazyClip
from headrace.tensors.gpu.batch import DeviceBatch, LazyBatch, StridedBatch, as_contiguous

if TYPE_CHECKING:
    from headrace.kernels.cpu.resample_taps import PlannedAxis
    from headrace.operators.support.compiled_steps import CompiledStepContext, SampleColumns
    from headrace.tensors.rows import Rows


class ResizingOperator(SampleOperator):
    """Base of operators that resample the spatial axes of their input.

    A sub-class calls `prepare` in its `infer`, and says in `plan_axes` how axes are resampled.
    """

    def prepare(self, data: Spec) -> Spec:
        """Get ready for inputs like `data`; the `Spec` of the output."""
        from headrace.kernels.cpu import resample

        self._kernel = resample
        self.resampler = SampleResampler(data.layout)
        self.resampling = Resampling(self, data.dtype)
        self._image = self.chunks_lazy = data.layout == "HWC"
        self._converts = data.dtype != self.resampling.dtype
        first = self.resampler.first
        self.spatial = slice(first, first + self.resampler.spatial_ndim)
        """The spatial ones among the axes of the input."""
        return data._replace(dtype=self.resampling.dtype)

    def plan_axes(self, c: PlanContext, extents: np.ndarray) -> np.ndarray:
        """Plan the resampling of the samples' axes, and the pixels wanted of them.

        `extents`: spatial extents, int64 ``(axes, samples)``; ``(axes, 1)`` where one stands for
        all.
        """
        raise NotImplementedError

    def plan(self, c: PlanContext, data: Samples | LazyBatch) -> Planned:
        shapes = data.shapes
        axes = self.plan_axes(c, np.ascontiguousarray(shapes[:, self.spatial].T))
        copies = np.zeros(len(shapes), np.bool_)
        if not self._converts:
            _plan.find_copies(axes, copies)
        outs = shapes.copy()
        outs[:, self.spatial] = axes["length"].T
        return Planned(outs, (axes.T, copies))

    def sample_axes(self, c: SampleContext) -> Sequence[PlannedAxis]:
        """Sampling of a sample's axes; empty where its output is the input."""
        axes, copies = c.row
        return () if copies else axes

    takes = (LazyPixels, StridedBatch)
    returns_lazy: tuple[type, ...] = (LazyImage, LazyClip, LazyBatch)

    def cpu(
        self, c: SampleContext, data: np.ndarray | LazyImage | LazyClip
    ) -> np.ndarray | LazyImage | LazyClip:
        axes = self.sample_axes(c)
        if not axes:
            return data
        resampling = self.resampling
        if self._image:
            assert not isinstance(data, LazyClip)
            return ResizedImage(
                c,
                self._kernel,
                data,
                axes,
                resampling.antialias,
                resampling.numpy_dtype,
                resampling.rounds_to,
            )
        out = c.out
        run: Any = self.resampler.run_clip if isinstance(data, LazyClip) else self.resampler.run
        run(c, data, axes, resampling.antialias, out, resampling.rounds_to)
        return out

    def cpu_chunk(self, c: ChunkContext, data: list[LazyImage]) -> Rows:
        made: Any = [self.cpu(c.sample(k), image) for k, image in enumerate(data)]
        return write_group(c, made)

    def compiled(self, c: CompiledStepContext, data: SampleColumns) -> ResizedColumns | None:
        from headrace.kernels.cpu import resample_images

        is_known = self._image and data.dtype == np.uint8 and len(c.is_read) == 1
        is_known = is_known and resample_images.can_make(self.resampling.numpy_dtype)
        return ResizedColumns(c, data, self.resampling) if is_known else None

    def batch_axes(self, c: BatchContext, data: LazyBatch) -> _resample_axes.AxesSampling:
        """Sampling of the axes of a batch's samples."""
        planned = plan_batch(self, c, data)
        if planned.device is None:
            table = as_contiguous(planned.table[0].T)
            antialias = self.resampling.antialias
            if table.shape[1] == 1:
                planned.device = _resample_axes.AxesSampling.in_common(table, antialias, c.size)
            else:
                planned.device = _resample_axes.AxesSampling(table, antialias)
            planned.device.are_copies = bool(planned.table[1].all())
        axes: _resample_axes.AxesSampling = planned.device
        return axes

    def gpu(self, c: BatchContext, data: DeviceBatch | StridedBatch) -> Any:
        axes = self.batch_axes(c, data)
        if axes.are_copies:
            return data
        resampling = self.resampling
        return ResizedBatch(
            data, axes, self.resampler.first, resampling.numpy_dtype, resampling.rounds_to
        )
