"""What operators that resample images have in common."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.errors import ArgumentValueError, ShapeError
from penstock.kernels.cpu.random import sample_uniforms
from penstock.operators.deferred import DeferredImage, pixels
from penstock.operators.image.resample_sample import OutputWindow, SampleResampler
from penstock.operators.image.resampling import Resampling
from penstock.operators.image.resize_geometry_batch import OneByOneError
from penstock.operators.image.resized_batch import ResizedBatch
from penstock.operators.image.resized_image import ResizedImage
from penstock.operators.operator import BatchContext, Operator, SampleContext
from penstock.operators.schema import Spec
from penstock.operators.shape_memo import ShapeMemo
from penstock.tensors.gpu.batch import DeviceBatch, LazyBatch, StridedBatch, shape_rows

if TYPE_CHECKING:
    from penstock.kernels.cpu.resample_taps import AxisSampling
    from penstock.kernels.gpu.resample_axes import AxesSampling

Plan = tuple[Sequence["AxisSampling"], Sequence[OutputWindow]]
"""How each spatial axis of a sample is resampled, and what of it is wanted."""


class ResizingOperator(Operator):
    """Base of operators that resample the spatial axes of their input.

    A sub-class calls `prepare` in its `infer`, and says what happens to a sample in `sample_plan`
    and to a batch in `batch_plan`.
    """

    def prepare(self, data: Spec) -> Spec:
        """Get ready for inputs like `data`; the `Spec` of the output."""
        from penstock.kernels.cpu import resample

        self._kernel = resample
        self.resampler = SampleResampler(data.layout)
        self.resampling = Resampling(self, data.dtype)
        self._image = data.layout == "HWC"
        self._plans: ShapeMemo[AxesSampling] = ShapeMemo()
        return data._replace(dtype=self.resampling.dtype)

    def sample_plan(self, c: SampleContext, extents: tuple[int, ...]) -> Plan:
        """What happens to a sample with these spatial extents."""
        raise NotImplementedError

    def cpu(self, c: SampleContext, *inputs: np.ndarray | DeferredImage) -> Any:
        data = inputs[0]
        resampler, resampling = self.resampler, self.resampling
        axes, windows = self.sample_plan(c, resampler.spatial(data.shape))
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
        axes, windows = self.sample_plan(c, data.shape[:2])
        if self._copies(data, axes, windows):
            return data
        return self._resized(c, data, axes, windows)

    gpu_takes = (StridedBatch,)

    draws = False
    """Whether plans are drawn at random."""

    def batch_plan(self, c: BatchContext, extents: np.ndarray) -> AxesSampling:
        """What happens to the samples of a batch.

        Parameters
        ----------
        c
            The batch.
        extents
            Spatial extents, int64 ``(axes, samples)``, or ``(axes, 1)`` if they are the same.

        Raises
        ------
        OneByOneError, ShapeError
            If `sample_plan` has to be asked for the samples one by one.
        """
        raise OneByOneError

    def sampling(self, c: BatchContext, axes: np.ndarray) -> AxesSampling:
        """The plan made of `AXIS` ``(axes, samples)``, or ``(axes, 1)`` for all samples."""
        from penstock.kernels.gpu.resample_axes import AxesSampling

        antialias = self.resampling.antialias
        if axes.shape[1] == 1:
            return AxesSampling.in_common(axes, antialias, c.size)
        return AxesSampling(axes, antialias)

    def gpu(self, c: BatchContext, *inputs: Any) -> LazyBatch:
        data: DeviceBatch | StridedBatch = inputs[0]
        resampling = self.resampling
        if self.draws or self.tensor_args:
            axes = self._batch_plan(c, data)
        else:
            axes = self._plans.of(data, lambda: self._batch_plan(c, data))
        if data.dtype == resampling.numpy_dtype and axes.copies():
            return data
        return ResizedBatch(
            data, axes, self.resampler.first, resampling.numpy_dtype, resampling.rounds_to
        )

    def _batch_plan(self, c: BatchContext, data: LazyBatch) -> AxesSampling:
        first, count = self.resampler.first, self.resampler.spatial_ndim
        extents = np.ascontiguousarray(shape_rows(data)[:, first : first + count].T)
        try:
            return self.batch_plan(c, extents)
        except (OneByOneError, ShapeError, ArgumentValueError):
            return plan_one_by_one(self, c, np.broadcast_to(extents, (count, c.size)))

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


class _SampleOfBatch:
    """What `sample_plan` needs to know of one sample of a batch."""

    def __init__(self, c: BatchContext, index: int, args: SimpleNamespace) -> None:
        self.args = args
        self.index = index
        self.seed, self.iteration = c.seed, c.iteration

    def uniforms(self, count: int) -> np.ndarray:
        """As of `SampleContext`."""
        return sample_uniforms(self.seed, self.iteration, self.index, count)


def plan_one_by_one(op: ResizingOperator, c: BatchContext, extents: np.ndarray) -> AxesSampling:
    """The plans of all samples together, each made by `sample_plan`."""
    from penstock.kernels.gpu.resample_axes import AXIS, AxesSampling

    values = {name: c.values(name) for name in op.tensor_args}
    table = np.empty((len(extents), c.size), AXIS)
    for i, shape in enumerate(map(tuple, extents.T.tolist())):
        args = SimpleNamespace(**vars(c.args))
        for name, found in values.items():
            setattr(args, name, found[i])
        sample: Any = _SampleOfBatch(c, i, args)
        try:
            axes, windows = op.sample_plan(sample, shape)
        except Exception as error:
            raise c.located(error, i) from error
        table[:, i] = [
            (*axis[:5], window.begin, window.length, window.step)
            for axis, window in zip(axes, windows, strict=True)
        ]
    return AxesSampling(table, bool(op.args.antialias))
