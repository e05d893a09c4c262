"""`reductions.variance` and `reductions.std_dev`."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from headrace.kernels.cpu import reduce as _cpu
from headrace.kernels.gpu import reduce as _gpu
from headrace.operators.support.argument_types import IntArg
from headrace.operators.support.operator import operator
from headrace.operators.support.reduction import AXES, DATA, Reduction
from headrace.operators.support.rules import AXES_OR_NAMES
from headrace.operators.support.schema import Arg, Input
from headrace.types import DALIDataType

_INPUTS = (
    DATA,
    Input(
        "mean",
        "Reference of distances: a number for each element of the output, or a single one.",
        dtypes=(DALIDataType.FLOAT,),
    ),
)
_DDOF = Arg(
    "ddof",
    IntArg,
    0,
    "What is taken off the number of elements that the sum of squares is divided by: 1 for an "
    "unbiased estimate.",
)


class _Deviation(Reduction):
    """Shared code of `variance` and `std_dev`."""

    root: ClassVar[bool]

    def dtypes(self, data: DALIDataType) -> tuple[DALIDataType, ...]:
        return (DALIDataType.FLOAT,)

    def reduced(self, data: np.ndarray, axes: tuple[int, ...], *centre: np.ndarray) -> np.ndarray:
        found = _cpu.spread(data, centre[0], axes, self.args.ddof)
        if self.root:
            with np.errstate(invalid="ignore"):
                found = np.sqrt(found)
        return found

    def formula(self) -> _gpu.Formula:
        return _gpu.Formula(
            "SQUARE", np.dtype(np.float64), divides=True, root=self.root, ddof=self.args.ddof
        )


@operator(
    "reductions.variance",
    inputs=_INPUTS,
    args=(*AXES, _DDOF),
    rules=(AXES_OR_NAMES,),
    output_docs=("The variances.",),
)
class Variance(_Deviation):
    """Takes the mean squared distance to a given mean along axes.

    Examples
    --------
    >>> mean = fn.reductions.mean(audio, axes=0)
    >>> variance = fn.reductions.variance(audio, mean, axes=0)
    """

    root = False


@operator(
    "reductions.std_dev",
    inputs=_INPUTS,
    args=(*AXES, _DDOF),
    rules=(AXES_OR_NAMES,),
    output_docs=("The standard deviations.",),
)
class StdDev(_Deviation):
    """Takes the root of the mean squared distance to a given mean along axes.

    Examples
    --------
    >>> mean = fn.reductions.mean(audio, axes=0)
    >>> deviation = fn.reductions.std_dev(audio, mean, axes=0)
    """

    root = True
