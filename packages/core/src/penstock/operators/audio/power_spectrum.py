"""`power_spectrum`."""

from __future__ import annotations

import numpy as np

from penstock.errors import ArgumentValueError, ShapeError
from penstock.kernels.cpu.power_spectrum import power_spectrum
from penstock.operators.audio.spectrogram import POWER
from penstock.operators.support.argument_types import IntArg
from penstock.operators.support.operator import SampleContext, SampleOperator, operator
from penstock.operators.support.schema import Arg, Input, Spec
from penstock.types import DALIDataType


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
        return data

    def cpu(self, c: SampleContext, data: np.ndarray) -> np.ndarray:
        args = self.args
        _check_axis(args.axis, data.ndim)
        axis = args.axis if args.axis >= 0 else data.ndim - 1
        length = data.shape[axis]
        if args.nfft is not None and args.nfft > 0:
            length = args.nfft
        if length == 0:
            raise ShapeError(
                f"Axis {axis} of the shape {data.shape} has no elements to transform; give `nfft` "
                "to have zeros in their place."
            )
        shape = (*data.shape[:axis], length // 2 + 1, *data.shape[axis + 1 :])
        out = c.empty(shape, np.float32)
        power_spectrum(data, axis, length, out, c.temp, squared=args.power == 2)
        return out


def _check_axis(axis: int, ndim: int) -> None:
    if ndim == 0:
        raise ShapeError("A number has no axis to transform along.")
    if axis >= ndim:
        raise ArgumentValueError(
            f"`axis` is {axis}; allowed are 0 to {ndim - 1}, and negative numbers for the last."
        )
