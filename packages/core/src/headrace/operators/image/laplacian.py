"""`laplacian`."""

from __future__ import annotations

import numpy as np

from headrace.errors import ArgumentValueError, MisusedArgumentError
from headrace.kernels.cpu import laplacian as _cpu
from headrace.kernels.gpu import laplacian as _gpu
from headrace.operators.support.argument_types import BoolArg, FloatListArg, IntListArg
from headrace.operators.support.filter_windows import (
    FILTERED_DTYPE,
    data_axes,
    filtered_type,
    for_each_axis,
)
from headrace.operators.support.operator import (
    BatchContext,
    SampleContext,
    SampleOperator,
    operator,
)
from headrace.operators.support.planning import PlanContext, Planned, Samples, plan_batch
from headrace.operators.support.schema import Arg, Input, Spec
from headrace.tensors.gpu.batch import DeviceBatch
from headrace.types import to_numpy_type
from headrace.types.dtypes import FLOATS, INTEGERS

_LONGEST = 31
"""The weights of longer windows do not fit into float32."""


@operator(
    "laplacian",
    inputs=Input(
        "data",
        "Data with one to three axes to differentiate along: all but channels (C, first or last) "
        "and frames (F). Without a layout, every axis.",
        dtypes=(*INTEGERS, *FLOATS),
        frames_lead=True,
    ),
    args=(
        Arg(
            "window_size",
            IntListArg,
            (3,),
            f"Number of elements, odd, from 3 to {_LONGEST}, of the window of second derivatives, "
            "one for all axes or one for each.",
            per_frame=True,
            shape_of="() or (axes,)",
        ),
        Arg(
            "smoothing_size",
            IntListArg,
            None,
            f"Number of elements, odd, from 1 to {_LONGEST}, of the windows that smooth along the "
            "other axes, one for all or one for each; 1 smooths nothing. If not given, that of the "
            "window of the derivative.",
            per_frame=True,
            shape_of="() or (axes,)",
        ),
        Arg(
            "scale",
            FloatListArg,
            None,
            "What second derivatives are multiplied by before they are added, one for all or one "
            "for each axis; 1 if not given.",
            per_frame=True,
            shape_of="() or (axes,)",
        ),
        Arg(
            "normalized_kernel",
            BoolArg,
            False,
            "Scale second derivatives so that, of a window of any size, magnitudes are those of "
            "the shortest one.",
        ),
        FILTERED_DTYPE,
    ),
    output_docs=("The sum of second derivatives, in the layout of the input.",),
    frames=True,
)
class Laplacian(SampleOperator):
    """Adds up the second derivatives along all axes.

    Those along an axis are smoothed along the others. Weights of the windows are binomial, and
    their second differences. Beyond the border, data is mirrored without repeating the outermost
    element. Sums are float32; integers are rounded, halves away from zero, and saturate.

    Examples
    --------
    >>> edges = fn.laplacian(images, window_size=5, normalized_kernel=True, dtype=types.FLOAT)
    """

    keeps_shape = True

    def infer(self, data: Spec) -> Spec:
        dtype = filtered_type(self.args.dtype, data.dtype)
        if self.args.normalized_kernel and self.given("scale"):
            raise MisusedArgumentError(
                "Parameter ``scale`` cannot be specified when ``normalized_kernel`` is set to "
                "True. Leave one of them out."
            )
        self._dtype = np.dtype(to_numpy_type(dtype))
        self._axes = None if data.ndim is None else data_axes(data.layout, data.ndim)
        self._layout = data.layout
        return data._replace(dtype=dtype)

    def plan(self, c: PlanContext, data: Samples) -> Planned:
        shapes = data.shapes
        _, count = self._axes or data_axes(self._layout, shapes.shape[1])
        along = for_each_axis(self, c, "window_size", np.dtype(np.int64), count)
        _check_sizes("Window size", "window_size", along, 3)
        across = along
        sizes = np.repeat(along[:, :, np.newaxis], count, axis=2)
        """``(samples, derivatives, axes)``: numbers of weights."""
        if self.given("smoothing_size"):
            across = for_each_axis(self, c, "smoothing_size", np.dtype(np.int64), count)
            _check_sizes("Smoothing window size", "smoothing_size", across, 1)
            sizes = np.where(np.eye(count, dtype=bool), along[:, np.newaxis], across[:, np.newaxis])
        if self.args.normalized_kernel:
            scales = 2.0 ** (count + 2 - sizes.sum(axis=2))
        elif self.given("scale"):
            scales = for_each_axis(self, c, "scale", np.dtype(np.float64), count)
        else:
            scales = np.ones((1, count))
        size = len(shapes)
        return Planned(
            shapes,
            (np.broadcast_to(sizes, (size, count, count)), np.broadcast_to(scales, (size, count))),
        )

    def cpu(self, c: SampleContext, data: np.ndarray) -> np.ndarray:
        first, _ = self._axes or data_axes(self._layout, data.ndim)
        out = c.out
        sizes, scales = c.row
        _cpu.laplacian(data, first, sizes, scales, out)
        return out

    def gpu(self, c: BatchContext, data: DeviceBatch) -> DeviceBatch:
        first, _ = self._axes or data_axes(self._layout, data.ndim)
        sizes, scales = plan_batch(self, c, data).table
        out = c.empty(data.extents, self._dtype)
        _gpu.laplacian(c.queue, data, first, sizes, scales, out)
        return out


def _check_sizes(words: str, name: str, sizes: np.ndarray, least: int) -> None:
    wrong = (sizes < least) | (sizes > _LONGEST) | (sizes % 2 == 0)
    if wrong.any():
        raise ArgumentValueError(
            f"{words} must be an odd integer between {least} and {_LONGEST}, got "
            f"{sizes[wrong][0]} for `{name}`."
        )
