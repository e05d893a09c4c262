"""`gaussian_blur`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headrace.kernels.cpu.filter import gaussian_windows, separable_filter
from headrace.kernels.gpu import filter as _gpu_filter
from headrace.operators.support.argument_types import FloatListArg, IntListArg
from headrace.operators.support.filter_windows import (
    FILTERED_DTYPE,
    data_axes,
    filtered_type,
    resolved,
)
from headrace.operators.support.operator import (
    BatchContext,
    SampleContext,
    SampleOperator,
    operator,
)
from headrace.operators.support.planning import PlanContext, Planned, Samples, plan_batch
from headrace.operators.support.schema import Arg, Input, Spec
from headrace.tensors.gpu.batch import DeviceBatch, as_contiguous
from headrace.types import to_numpy_type
from headrace.types.dtypes import FLOATS, INTEGERS

if TYPE_CHECKING:
    from headrace.kernels.gpu.filter import FilterWindows


@operator(
    "gaussian_blur",
    inputs=Input(
        "data",
        "Data with one to three axes to blur along: all but channels (C, first or last) and "
        "frames (F). Without a layout, every axis.",
        dtypes=(*INTEGERS, *FLOATS),
        frames_lead=True,
    ),
    args=(
        Arg(
            "sigma",
            FloatListArg,
            (0.0,),
            "Standard deviation of the window in elements, one for all axes or one for each, in "
            "the order of the layout; 0 to derive it from `window_size`.",
            per_frame=True,
            shape_of="() or (axes,)",
        ),
        Arg(
            "window_size",
            IntListArg,
            (0,),
            "Number of the window's elements, odd, one for all axes or one for each; 0 to derive "
            "it from `sigma`.",
            per_frame=True,
            shape_of="() or (axes,)",
        ),
        FILTERED_DTYPE,
    ),
    output_docs=("The blurred data, in the layout of the input.",),
    frames=True,
)
class GaussianBlur(SampleOperator):
    """Blurs by averaging each element's neighbourhood with Gaussian weights.

    With only `sigma`, windows reach ``ceil(3 * sigma)`` elements to either side. With only
    `window_size`, that is with a radius ``r``, sigma is ``0.3 * (r - 1) + 0.8``. Beyond the
    border, data is mirrored without repeating the outermost element.

    Examples
    --------
    >>> soft = fn.gaussian_blur(images, sigma=fn.random.uniform(range=(0.5, 2.0)))
    """

    keeps_shape = True

    def infer(self, data: Spec) -> Spec:
        dtype = filtered_type(self.args.dtype, data.dtype)
        self._source = np.dtype(to_numpy_type(data.dtype))
        self._dtype = np.dtype(to_numpy_type(dtype))
        self._axes = None if data.ndim is None else data_axes(data.layout, data.ndim)
        self._layout = data.layout
        self._constant_windows: dict[int, FilterWindows] = {}
        """By number of axes, where all samples have the same."""
        return data._replace(dtype=dtype)

    def plan(self, c: PlanContext, data: Samples) -> Planned:
        shapes = data.shapes
        _, count = self._axes or data_axes(self._layout, shapes.shape[1])
        size = len(shapes)
        return Planned(
            shapes, tuple(np.broadcast_to(v, (size, count)) for v in resolved(self, c, count))
        )

    def cpu(self, c: SampleContext, data: np.ndarray) -> np.ndarray:
        first, count = self._axes or data_axes(self._layout, data.ndim)
        sigmas, sizes = c.row
        windows = gaussian_windows(tuple(sigmas), tuple(sizes))
        blur = separable_filter(data.shape, first, count, self._source, self._dtype)
        out = c.out
        blur(data, out, windows)
        return out

    def gpu(self, c: BatchContext, data: DeviceBatch) -> DeviceBatch:
        first, count = self._axes or data_axes(self._layout, data.ndim)
        windows = self._constant_windows.get(count)
        if windows is None:
            sigmas, sizes = plan_batch(self, c, data).table
            if not self.tensor_args:
                sigmas, sizes = sigmas[:1], sizes[:1]
            windows = _gpu_filter.gaussian_windows(as_contiguous(sigmas), as_contiguous(sizes))
            if not self.tensor_args:
                self._constant_windows[count] = windows
        out = c.empty(data.extents, self._dtype)
        _gpu_filter.filter_separably(c.queue, data, out, first, windows)
        return out
