"""`mel_filter_bank`."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.errors import ArgumentValueError, LayoutError, ShapeError
from headrace.kernels.cpu.bands import MEL_SCALES, Bands, apply_bands, mel_bands
from headrace.kernels.gpu import bands as _gpu_bands
from headrace.kernels.gpu import spectrogram as _gpu_spectrogram
from headrace.operators.support.argument_types import BoolArg, FloatArg, IntArg, StringArg
from headrace.operators.support.audio.lazy_spectrum import LazySpectrum, numbers
from headrace.operators.support.audio.spectrum_batch import SpectrumBatch
from headrace.operators.support.audio.spectrum_steps import SpectrumSteps
from headrace.operators.support.compiled_steps import CompiledStepContext
from headrace.operators.support.operator import BatchContext, ChunkContext, SampleOperator, operator
from headrace.operators.support.planning import PlanContext, Planned, Samples, plan_batch
from headrace.operators.support.schema import Arg, Input, Spec
from headrace.tensors.gpu.batch import LazyBatch
from headrace.tensors.rows import Rows
from headrace.types import DALIDataType


@operator(
    "mel_filter_bank",
    inputs=Input(
        "spectrogram",
        "Spectra, along the axis ``f`` of the layout. Without a layout, along the last but one, or "
        "the only one.",
        dtypes=(DALIDataType.FLOAT,),
    ),
    args=(
        Arg(
            "freq_high",
            FloatArg,
            0.0,
            "Highest frequency that is taken in, hertz; half of `sample_rate` if it is 0 or less.",
        ),
        Arg("freq_low", FloatArg, 0.0, "Lowest frequency that is taken in, hertz."),
        Arg(
            "mel_formula",
            StringArg,
            "slaney",
            'The mel scale: ``"slaney"`` (Auditory Toolbox) is linear up to 1 kHz and logarithmic '
            'above; ``"htk"`` (O\'Shaughnessy) is ``1127 * log(1 + frequency / 700)``.',
            choices=tuple(MEL_SCALES),
        ),
        Arg("nfilter", IntArg, 128, "Number of filters."),
        Arg(
            "normalize",
            BoolArg,
            True,
            "Whether each triangle has an area of 1 instead of a height of 1.",
        ),
        Arg("sample_rate", FloatArg, 44100.0, "Sampling rate of the signal, hertz."),
    ),
    output_docs=("float32, in the layout of the input; the extent of ``f`` is `nfilter`.",),
)
class MelFilterBank(SampleOperator):
    """Sums up a spectrum with triangular weights that are equally wide on the mel scale.

    The extent of ``f`` tells the length of the Fourier transform, ``2 * (extent - 1)``, and so
    which frequencies the spectrum has.

    Examples
    --------
    >>> mel = fn.mel_filter_bank(fn.spectrogram(audio), sample_rate=16000, nfilter=80)
    """

    def check_constants(self) -> None:
        args = self.args
        if args.nfilter < 1:
            raise ArgumentValueError(f"`nfilter` is {args.nfilter}; it has to be at least 1.")
        rate, low, high = args.sample_rate, args.freq_low, args.freq_high
        if not (rate > 0 and np.isfinite(rate)):
            raise ArgumentValueError(f"`sample_rate` is {rate}; it has to be above 0.")
        if not low >= 0:
            raise ArgumentValueError(f"`freq_low` is {low}; it has to be at least 0.")
        high = rate / 2 if high <= 0 else high
        if not low < high <= rate:
            raise ArgumentValueError(
                f"`freq_high` is {high}; it has to be above `freq_low`, which is {low}, and at "
                f"most `sample_rate`, {rate}."
            )

    def infer(self, *inputs: Spec) -> Spec:
        args = self.args
        rate, low, high = args.sample_rate, args.freq_low, args.freq_high
        high = high if high > 0 else rate / 2
        self._settings = (args.nfilter, rate, low, high, args.mel_formula, args.normalize)
        self._layout = inputs[0].layout
        self._known: dict[int, Bands] = {}
        self._device_bands: dict[int, _gpu_spectrogram.DeviceBands] = {}
        if inputs[0].ndim is not None:
            self._axis(inputs[0].ndim)
        return inputs[0]

    def _axis(self, ndim: int) -> int:
        if self._layout:
            axis = self._layout.find("f")
            if axis < 0:
                raise LayoutError(
                    f'The input has the layout "{self._layout}", which has no axis "f" of '
                    "frequencies. `fn.reshape(..., layout=...)` renames axes."
                )
            return axis
        if ndim == 0:
            raise ShapeError("The input is a single number; expected spectra along an axis.")
        return max(ndim - 2, 0)

    def _bands(self, bins: int) -> Bands:
        found = self._known.get(bins)
        if found is None:
            found = self._known[bins] = mel_bands(bins, *self._settings)
        return found

    takes = (LazySpectrum, SpectrumBatch)
    returns_lazy = (LazySpectrum, SpectrumBatch)
    chunked = True

    def plan(self, c: PlanContext, *inputs: Samples) -> Planned:
        shapes = inputs[0].shapes.copy()
        shapes[:, self._axis(shapes.shape[1])] = self.args.nfilter
        return Planned(shapes)

    def cpu_chunk(self, c: ChunkContext, *inputs: Any) -> Rows | LazySpectrum:
        data = inputs[0]
        if isinstance(data, LazySpectrum) and data.bands is None:
            data.bands = self._bands(data.bins)
            return data
        out = c.out()
        for source, own in zip(numbers(c, data), out, strict=True):
            axis = self._axis(source.ndim)
            apply_bands(source, axis, self._bands(source.shape[axis]), own)
        return out

    compiled_takes = (SpectrumSteps,)

    def compiled(self, c: CompiledStepContext, *inputs: Any) -> SpectrumSteps | None:
        data = inputs[0]
        if not isinstance(data, SpectrumSteps) or data.bands is not None:
            return None
        data.bands = self._bands(data.plan.bins)
        return data

    def gpu(self, c: BatchContext, *inputs: Any) -> LazyBatch:
        data = inputs[0]
        if isinstance(data, SpectrumBatch):
            if data.bands is None:
                return data.with_bands(self._bands_on_device(data.plan.plan.bins))
            data = data.materialise(c.queue)
        (shapes,) = plan_batch(self, c, data).shapes
        out = c.empty(np.broadcast_to(shapes, data.shapes.shape), np.float32)
        axis = self._axis(data.ndim)
        _gpu_bands.apply_bands(c.queue, data, axis, self._bands_on_device, out)
        return out

    def _bands_on_device(self, bins: int) -> _gpu_spectrogram.DeviceBands:
        found = self._device_bands.get(bins)
        if found is None:
            made = _gpu_spectrogram.DeviceBands(self._bands(bins))
            found = self._device_bands.setdefault(bins, made)
        return found
