"""`reductions.max` and `reductions.min`."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from headrace.kernels.cpu import reduce as _cpu
from headrace.kernels.gpu import reduce as _gpu
from headrace.operators.support.operator import operator
from headrace.operators.support.reduction import AXES, DATA, Reduction
from headrace.operators.support.rules import AXES_OR_NAMES


class _Extreme(Reduction):
    """Shared code of `min` and `max`."""

    largest: ClassVar[bool]

    def reduced(self, data: np.ndarray, axes: tuple[int, ...], *centre: np.ndarray) -> np.ndarray:
        return _cpu.extremes(data, axes, largest=self.largest)

    def formula(self) -> _gpu.Formula:
        return _gpu.Formula("MAX" if self.largest else "MIN", self._source)


@operator(
    "reductions.max",
    inputs=DATA,
    args=AXES,
    rules=(AXES_OR_NAMES,),
    output_docs=("The largest elements, in the type of the input.",),
)
class Max(_Extreme):
    """Takes the largest element along axes.

    Not-a-numbers are passed over. Of nothing, it is the lowest finite number of the type.

    Examples
    --------
    >>> peaks = fn.reductions.max(audio, axes=0)
    """

    largest = True


@operator(
    "reductions.min",
    inputs=DATA,
    args=AXES,
    rules=(AXES_OR_NAMES,),
    output_docs=("The smallest elements, in the type of the input.",),
)
class Min(_Extreme):
    """Takes the smallest element along axes.

    Not-a-numbers are passed over. Of nothing, it is the highest finite number of the type.

    Examples
    --------
    >>> floor = fn.reductions.min(images, axis_names="HW")
    """

    largest = False
