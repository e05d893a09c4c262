"""`experimental.median_blur`."""

from __future__ import annotations

import numpy as np

from headrace.errors import ArgumentValueError
from headrace.kernels.cpu import median as _cpu
from headrace.kernels.gpu import median as _gpu
from headrace.operators.support.argument_types import IntListArg
from headrace.operators.support.filter_windows import for_each_axis
from headrace.operators.support.operator import (
    BatchContext,
    SampleContext,
    SampleOperator,
    operator,
)
from headrace.operators.support.planning import PlanContext, Planned, Samples, plan_batch, repeated
from headrace.operators.support.schema import Arg, Input, Spec, data_types
from headrace.tensors.gpu.batch import DeviceBatch

_LONGEST = 1023


@operator(
    "experimental.median_blur",
    inputs=Input(
        "images",
        "Images or sequences of them.",
        layouts=("HW", "HWC", "FHWC", "CHW", "FCHW"),
        dtypes=data_types("UINT8 UINT16 INT32 FLOAT"),
    ),
    args=(
        Arg(
            "window_size",
            IntListArg,
            (3, 3),
            "Width and height of the window, odd; one number stands for both.",
            per_sample=True,
            shape_of="() or (2,)",
        ),
    ),
    output_docs=("The images, in the layout of the input.",),
    frames=True,
)
class MedianBlur(SampleOperator):
    """Gives each pixel the median of a window around it, each channel by itself.

    Beyond the border, the outermost pixels are repeated.

    Examples
    --------
    >>> without_specks = fn.experimental.median_blur(images, window_size=5)
    """

    keeps_shape = True

    def infer(self, images: Spec) -> Spec:
        layout = images.layout or {2: "HW", 3: "HWC"}.get(images.ndim or 0, "")
        self._planar = layout == "CHW"
        return images._replace(layout=layout)

    def plan(self, c: PlanContext, images: Samples) -> Planned:
        windows = for_each_axis(self, c, "window_size", np.dtype(np.int64), 2)[:, ::-1]
        wrong = (windows < 1) | (windows > _LONGEST) | (windows % 2 == 0)
        if wrong.any():
            raise ArgumentValueError(
                f"`window_size` must be an odd number from 1 to {_LONGEST}, got "
                f"{windows[wrong][0]}."
            )
        return Planned(repeated(images.shapes, c.size), (repeated(windows, c.size),))

    def cpu(self, c: SampleContext, image: np.ndarray) -> np.ndarray:
        out = c.out
        _cpu.median_blur(image, out, c.row[0], planar=self._planar)
        return out

    def gpu(self, c: BatchContext, images: DeviceBatch) -> DeviceBatch:
        (windows,) = plan_batch(self, c, images).table
        out = c.empty(images.extents, images.dtype)
        _gpu.median_blur(c.queue, images, windows, out, planar=self._planar)
        return out
