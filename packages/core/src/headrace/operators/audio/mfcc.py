"""`mfcc`."""

from __future__ import annotations

import numpy as np

from headrace.errors import ArgumentChoiceError, ArgumentValueError, ShapeError
from headrace.kernels.cpu.bands import Bands, apply_bands, cosine_bands
from headrace.kernels.gpu import bands as _gpu_bands
from headrace.kernels.gpu import spectrogram as _gpu_spectrogram
from headrace.operators.support.argument_types import BoolArg, FloatArg, IntArg
from headrace.operators.support.operator import (
    BatchContext,
    SampleContext,
    SampleOperator,
    operator,
)
from headrace.operators.support.planning import PlanContext, Planned, Samples, plan_batch
from headrace.operators.support.schema import Arg, Input, Spec
from headrace.tensors.gpu.batch import DeviceBatch
from headrace.types import DALIDataType

_DCT_TYPES = (1, 2, 3, 4)


@operator(
    "mfcc",
    inputs=Input(
        "data",
        "A mel spectrogram, usually in decibels, of at least two axes.",
        dtypes=(DALIDataType.FLOAT,),
    ),
    args=(
        Arg("axis", IntArg, 0, "Axis of the frequencies, which is transformed."),
        Arg("dct_type", IntArg, 2, "Type of the discrete cosine transform: 1, 2, 3 or 4."),
        Arg(
            "lifter",
            FloatArg,
            0.0,
            "Coefficient k is multiplied by ``1 + lifter / 2 * sin(pi * (k + 1) / lifter)``, which "
            "makes those in the middle larger. 0 or less for no such weights.",
        ),
        Arg(
            "n_mfcc",
            IntArg,
            20,
            "Number of coefficients; no more than there are frequencies are made.",
        ),
        Arg(
            "normalize",
            BoolArg,
            False,
            "Whether the transform is orthonormal, which there is not for `dct_type` 1.",
        ),
    ),
    output_docs=("float32, in the layout of the input; `axis` has the coefficients.",),
)
class Mfcc(SampleOperator):
    """Mel-frequency cepstral coefficients: a cosine transform along the mel scale.

    Without `normalize`, transforms have no factor in front of their sums.

    Examples
    --------
    >>> mel = fn.mel_filter_bank(fn.spectrogram(audio), sample_rate=16000)
    >>> coefficients = fn.mfcc(fn.to_decibels(mel), n_mfcc=13, lifter=22, normalize=True)
    """

    def infer(self, data: Spec) -> Spec:
        args = self.args
        if args.n_mfcc < 1:
            raise ArgumentValueError(f"`n_mfcc` is {args.n_mfcc}; it has to be at least 1.")
        if args.normalize and args.dct_type == 1:
            raise ArgumentValueError(
                "Ortho-normalization is not supported for DCT type I: `normalize` is set and "
                "`dct_type` is 1. Types 2, 3 and 4 have an orthonormal transform."
            )
        if args.dct_type not in _DCT_TYPES:
            raise ArgumentChoiceError(
                f"Unsupported DCT type: {args.dct_type}. Supported types are: "
                f"{', '.join(map(str, _DCT_TYPES))}. `dct_type` says which."
            )
        if args.axis < 0:
            raise ArgumentValueError(f"Provided axis cannot be negative: `axis` is {args.axis}.")
        if data.ndim is not None:
            self._check_rank(data.ndim)
        self._device_bands: dict[int, _gpu_spectrogram.DeviceBands] = {}
        return data

    def _check_rank(self, ndim: int) -> None:
        if ndim < 2:
            raise ShapeError(
                f"The input has {ndim} axes; expected at least two. `fn.expand_dims` adds one."
            )
        if self.args.axis >= ndim:
            raise ArgumentValueError(
                f"Axis {self.args.axis} is out of bounds [0,{ndim}): `axis` may be 0 to {ndim - 1}."
            )

    def _bands(self, size: int) -> Bands:
        args = self.args
        return cosine_bands(size, args.n_mfcc, args.dct_type, args.normalize, args.lifter)

    def plan(self, c: PlanContext, data: Samples) -> Planned:
        shapes = data.shapes.copy()
        self._check_rank(shapes.shape[1])
        extents = shapes[:, self.args.axis]
        if self.args.dct_type == 1 and (extents == 1).any():
            raise ShapeError(
                f"The input has 1 element along axis {self.args.axis}; `dct_type` 1 needs at least "
                "2."
            )
        np.minimum(extents, self.args.n_mfcc, out=extents)
        return Planned(shapes)

    def cpu(self, c: SampleContext, data: np.ndarray) -> np.ndarray:
        out, axis = c.out, self.args.axis
        if out.shape[axis]:
            apply_bands(data, axis, self._bands(data.shape[axis]), out)
        return out

    def gpu(self, c: BatchContext, data: DeviceBatch) -> DeviceBatch:
        out = c.empty(plan_batch(self, c, data).shapes[0], np.float32)
        _gpu_bands.apply_bands(c.queue, data, self.args.axis, self._bands_on_device, out)
        return out

    def _bands_on_device(self, size: int) -> _gpu_spectrogram.DeviceBands:
        found = self._device_bands.get(size)
        if found is None:
            made = _gpu_spectrogram.DeviceBands(self._bands(size))
            found = self._device_bands.setdefault(size, made)
        return found
