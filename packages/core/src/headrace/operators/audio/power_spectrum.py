"""`power_spectrum`."""

from __future__ import annotations

import numpy as np

from headrace.errors import ArgumentValueError, ShapeError
from headrace.kernels.cpu.power_spectrum import power_spectrum
from headrace.operators.audio.spectrogram import POWER
from headrace.operators.support.argument_types import IntArg
from headrace.operators.support.operator import SampleContext, SampleOperator, operator
from headrace.operators.support.planning import PlanContext, Planned, Samples
from headrace.operators.support.schema import Arg, Input, Spec
from headrace.types import DALIDataType


@operator(
    "power_spectrum",
    inputs=Input("data", "Signals along one of the axes.", dtypes=(DALIDataType.FLOAT,)),
    args=(
        Arg("axis", IntArg, -1, "Axis that is transformed; the last for any negative number."),
        Arg(
            "nfft",
            IntArg,
            None,
            "Length of the Fourier transforms: longer signals are cut off, shorter ones continued "
            "by zeros. The signals' own length when it is not given, 0 or negative.",
        ),
        POWER,
    ),
    output_docs=(
        "float32, in the layout of the input; the extent of `axis` is ``nfft // 2 + 1``.",
    ),
    devices=("cpu",),
)
class PowerSpectrum(SampleOperator):
    """Power of the frequencies of signals.

    Examples
    --------
    >>> powers = fn.power_spectrum(signals, axis=-1)
    """

    def infer(self, data: Spec) -> Spec:
        axis, ndim = self.args.axis, data.ndim
        if ndim is not None:
            _check_axis(axis, ndim)
        nfft = self.args.nfft
        self._length: int | None = None if nfft is None or nfft <= 0 else nfft
        return data

    def plan(self, c: PlanContext, data: Samples) -> Planned:
        shapes = data.shapes.copy()
        axis = self._axis(shapes.shape[1])
        lengths = shapes[:, axis]
        if self._length is not None:
            lengths[:] = self._length
        for wrong in data.shapes[lengths == 0][:1].tolist():
            raise ShapeError(
                f"Axis {axis} of the shape {tuple(wrong)} has no elements to transform; give "
                "`nfft` to have zeros in their place."
            )
        shapes[:, axis] = lengths // 2 + 1
        return Planned(shapes)

    def cpu(self, c: SampleContext, data: np.ndarray) -> np.ndarray:
        out, axis = c.out, self._axis(data.ndim)
        length = data.shape[axis] if self._length is None else self._length
        power_spectrum(data, axis, length, out, c.temp, squared=self.args.power == 2)
        return out

    def _axis(self, ndim: int) -> int:
        axis: int = self.args.axis
        _check_axis(axis, ndim)
        return axis if axis >= 0 else ndim - 1


def _check_axis(axis: int, ndim: int) -> None:
    if ndim == 0:
        raise ShapeError("A number has no axis to transform along.")
    if axis >= ndim:
        raise ArgumentValueError(
            f"`axis` is {axis}; allowed are 0 to {ndim - 1}, and negative numbers for the last."
        )
