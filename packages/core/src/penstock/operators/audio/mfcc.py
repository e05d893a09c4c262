"""`mfcc`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from penstock.errors import ArgumentValueError, ShapeError
from penstock.kernels.cpu.bands import Bands, apply_bands, cosine_bands
from penstock.operators.support.argument_types import BoolArg, FloatArg, IntArg
from penstock.operators.support.operator import (
    BatchContext,
    SampleContext,
    SampleOperator,
    operator,
)
from penstock.operators.support.schema import Arg, Input, Spec
from penstock.types import DALIDataType

if TYPE_CHECKING:
    from penstock.kernels.gpu.spectrogram import DeviceBands
    from penstock.tensors.gpu.batch import DeviceBatch


@operator(
    "mfcc",
    inputs=Input(
        "data",
        "A mel spectrogram, usually in decibels, of at least two axes.",
        dtypes=(DALIDataType.FLOAT,),
    ),
    args=(
        Arg("axis", IntArg, 0, "Axis of the frequencies, which is transformed."),
        Arg(
            "dct_type",
            IntArg,
            2,
            "Type of the discrete cosine transform.",
            choices=(1, 2, 3, 4),
        ),
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
                "`normalize` is set, but there is no orthonormal transform of `dct_type` 1. Types "
                "2, 3 and 4 have one."
            )
        if args.axis < 0:
            raise ArgumentValueError(f"`axis` is {args.axis}; it has to be at least 0.")
        if data.ndim is not None:
            self._check_rank(data.ndim)
        self._device_bands: dict[int, DeviceBands] = {}
        return data

    def _check_rank(self, ndim: int) -> None:
        if ndim < 2:
            raise ShapeError(
                f"The input has {ndim} axes; expected at least two. `fn.expand_dims` adds one."
            )
        if self.args.axis >= ndim:
            raise ArgumentValueError(f"`axis` is {self.args.axis}; allowed are 0 to {ndim - 1}.")

    def _bands(self, size: int) -> Bands:
        args = self.args
        if args.dct_type == 1 and size < 2:
            raise ShapeError(
                f"The input has {size} elements along axis {args.axis}; `dct_type` 1 needs at "
                "least 2."
            )
        return cosine_bands(size, args.n_mfcc, args.dct_type, args.normalize, args.lifter)

    def cpu(self, c: SampleContext, data: np.ndarray) -> np.ndarray:
        self._check_rank(data.ndim)
        axis = self.args.axis
        if data.size == 0 and data.shape[axis] == 0:
            return data
        bands = self._bands(data.shape[axis])
        out = c.empty((*data.shape[:axis], bands.sums, *data.shape[axis + 1 :]), np.float32)
        apply_bands(data, axis, bands, out)
        return out

    def gpu(self, c: BatchContext, data: DeviceBatch) -> DeviceBatch:
        from penstock.kernels.gpu.bands import apply_bands

        self._check_rank(data.ndim)
        axis = self.args.axis
        extents = data.shapes[:, axis]
        if self.args.dct_type == 1 and extents.min(initial=2) < 2:
            index = int(extents.argmin())
            try:
                self._bands(int(extents[index]))
            except ShapeError as error:
                raise c.located(error, index) from error
        shapes = data.shapes.copy()
        shapes[:, axis] = np.minimum(extents, self.args.n_mfcc)
        out = c.empty(shapes, np.float32)
        apply_bands(c.queue, data, axis, self._bands_on_device, out)
        return out

    def _bands_on_device(self, size: int) -> DeviceBands:
        from penstock.kernels.gpu.spectrogram import DeviceBands

        found = self._device_bands.get(size)
        if found is None:
            found = self._device_bands.setdefault(size, DeviceBands(self._bands(size)))
        return found
