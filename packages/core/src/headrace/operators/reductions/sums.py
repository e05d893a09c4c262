"""`reductions.sum`, `mean`, `mean_square` and `rms`."""

from __future__ import annotations

import numpy as np

from headrace.kernels.cpu import reduce as _cpu
from headrace.kernels.gpu import reduce as _gpu
from headrace.operators.support.argument_types import DataTypeArg
from headrace.operators.support.operator import operator
from headrace.operators.support.reduction import AXES, DATA, Reduction, count_of, widest
from headrace.operators.support.rules import AXES_OR_NAMES
from headrace.operators.support.schema import Arg
from headrace.types import DALIDataType

_FLOAT = DALIDataType.FLOAT
_LONG = (DALIDataType.INT64, DALIDataType.UINT64)


def _dtype(allowed: str) -> Arg:
    return Arg("dtype", DataTypeArg, None, f"Element type of the output: {allowed}.")


@operator(
    "reductions.sum",
    inputs=DATA,
    args=(
        *AXES,
        _dtype(
            "for integers INT64 or UINT64, as when it is not given, the type of the input, or "
            "FLOAT for those of up to 32 bits; for floats FLOAT"
        ),
    ),
    rules=(AXES_OR_NAMES,),
    output_docs=("The sums.",),
)
class Sum(Reduction):
    """Sums up elements along axes.

    Sums of integers wrap around in the output's type.

    Examples
    --------
    >>> energy = fn.reductions.sum(audio * audio, axes=0)
    """

    def dtypes(self, data: DALIDataType) -> tuple[DALIDataType, ...]:
        wide = widest(data)
        return (wide,) if data in _LONG else (wide, data, _FLOAT)

    def reduced(self, data: np.ndarray, axes: tuple[int, ...], *centre: np.ndarray) -> np.ndarray:
        return _cpu.sums(data, axes)

    def formula(self) -> _gpu.Formula:
        return _gpu.Formula("SUM", _exact(self._source))


def _exact(dtype: np.dtype) -> np.dtype:
    """Element type that sums are computed in."""
    return np.dtype(np.float64 if dtype.kind == "f" else f"{dtype.kind}8")


@operator(
    "reductions.mean",
    inputs=DATA,
    args=(*AXES, _dtype("FLOAT, or the type of the input, without fractions")),
    rules=(AXES_OR_NAMES,),
    output_docs=("The means.",),
)
class Mean(Reduction):
    """Takes the arithmetic mean along axes; that of nothing is not a number.

    Examples
    --------
    >>> grey = fn.reductions.mean(images, axis_names="C", keep_dims=True)
    """

    def dtypes(self, data: DALIDataType) -> tuple[DALIDataType, ...]:
        return (_FLOAT, data)

    def reduced(self, data: np.ndarray, axes: tuple[int, ...], *centre: np.ndarray) -> np.ndarray:
        if self._dtype.kind == "f":
            return _cpu.mean(data, axes)
        return _cpu.mean_of_integers(_cpu.sums(data, axes), count_of(data, axes))

    def formula(self) -> _gpu.Formula:
        real = self._dtype.kind == "f"
        return _gpu.Formula(
            "SUM", np.dtype(np.float64) if real else _exact(self._source), divides=True
        )


@operator(
    "reductions.mean_square",
    inputs=DATA,
    args=(*AXES, _dtype("FLOAT, or for integers INT64 or UINT64, without fractions")),
    rules=(AXES_OR_NAMES,),
    output_docs=("The means of squares.",),
)
class MeanSquare(Reduction):
    """Takes the mean of squares along axes; that of nothing is not a number.

    Examples
    --------
    >>> power = fn.reductions.mean_square(audio, axes=0)
    """

    def dtypes(self, data: DALIDataType) -> tuple[DALIDataType, ...]:
        return (_FLOAT, widest(data))

    def reduced(self, data: np.ndarray, axes: tuple[int, ...], *centre: np.ndarray) -> np.ndarray:
        if self._dtype.kind == "f":
            return _cpu.spread(data, _cpu.ZERO, axes, 0)
        return _cpu.mean_of_integers(_cpu.sums_of_squares(data, axes), count_of(data, axes))

    def formula(self) -> _gpu.Formula:
        real = self._dtype.kind == "f"
        return _gpu.Formula(
            "SQUARE", np.dtype(np.float64) if real else _exact(self._source), divides=True
        )


@operator(
    "reductions.rms",
    inputs=DATA,
    args=(*AXES, _dtype("FLOAT, or the type of the input, without fractions")),
    rules=(AXES_OR_NAMES,),
    output_docs=("The roots.",),
    class_name="RMS",
)
class RMS(Reduction):
    """Takes the root of the mean of squares along axes; that of nothing is not a number.

    Examples
    --------
    >>> loudness = fn.reductions.rms(audio, axes=0)
    """

    def dtypes(self, data: DALIDataType) -> tuple[DALIDataType, ...]:
        return (_FLOAT, data)

    def reduced(self, data: np.ndarray, axes: tuple[int, ...], *centre: np.ndarray) -> np.ndarray:
        found: np.ndarray = np.sqrt(_cpu.spread(data, _cpu.ZERO, axes, 0))
        return found

    def formula(self) -> _gpu.Formula:
        return _gpu.Formula("SQUARE", np.dtype(np.float64), divides=True, root=True)
