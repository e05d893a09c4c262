"""`equalize`."""

from __future__ import annotations

import math

import numpy as np

from headrace.kernels.gpu import equalize as _gpu
from headrace.operators.support.operator import (
    BatchContext,
    SampleContext,
    SampleOperator,
    operator,
)
from headrace.operators.support.planning import PlanContext, Planned, Samples
from headrace.operators.support.schema import Input, Spec
from headrace.tensors.gpu.batch import DeviceBatch
from headrace.types import DALIDataType

_LAYOUTS = ("HW", "HWC", "CHW", "FHW", "FHWC", "FCHW")
_BY_RANK = {2: "HW", 3: "HWC", 4: "FHWC"}


@operator(
    "equalize",
    inputs=Input(
        "data", "Images or sequences of them.", layouts=_LAYOUTS, dtypes=(DALIDataType.UINT8,)
    ),
    output_docs=("The equalized images, in the layout of the input.",),
    old_names=("experimental.equalize",),
)
class Equalize(SampleOperator):
    """Equalizes the histogram of each channel of each image.

    Levels are mapped so that all of them become about equally frequent: the lowest level of a
    channel becomes 0, the highest 255, and what is between follows from the share of pixels that
    are not brighter. A channel of a single level stays as it is.

    Examples
    --------
    >>> flat = fn.equalize(images)
    """

    def infer(self, data: Spec) -> Spec:
        from headrace.kernels.cpu.equalize import equalize

        self._kernel = equalize
        self._layout = data.layout
        return data

    def plan(self, c: PlanContext, data: Samples) -> Planned:
        return Planned(data.shapes)

    def _first_axis(self, ndim: int) -> int:
        """Index of the height's axis, which the width's follows."""
        return (self._layout or _BY_RANK[ndim]).index("H")

    def cpu(self, c: SampleContext, data: np.ndarray) -> np.ndarray:
        out = c.out
        if data.size:
            shape, first = data.shape, self._first_axis(data.ndim)
            pixels, channels = shape[first] * shape[first + 1], math.prod(shape[first + 2 :])
            data = np.ascontiguousarray(data)
            self._kernel(data.reshape(-1), out.reshape(-1), pixels, channels)
        return out

    def gpu(self, c: BatchContext, data: DeviceBatch) -> DeviceBatch:
        out = c.empty(data.extents, np.uint8)
        _gpu.equalize(c.queue, data, out, self._first_axis(data.ndim))
        return out
