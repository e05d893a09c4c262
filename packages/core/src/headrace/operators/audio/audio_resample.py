"""`audio_resample`."""

from __future__ import annotations

import numpy as np

from headrace.errors import ShapeError
from headrace.kernels.cpu.audio.resample import resample
from headrace.kernels.cpu.audio.sinc_window import sinc_window
from headrace.kernels.gpu import audio_resample as _gpu
from headrace.operators.support.argument_types import DataTypeArg, FloatArg, IntArg
from headrace.operators.support.audio.decoding import QUALITY, check_quality
from headrace.operators.support.audio.resampling import resampled
from headrace.operators.support.operator import (
    BatchContext,
    SampleContext,
    SampleOperator,
    operator,
)
from headrace.operators.support.planning import (
    NumberTable,
    PlanContext,
    Planned,
    Samples,
    plan_batch,
)
from headrace.operators.support.rules import exactly_one, together
from headrace.operators.support.schema import Arg, Input, Spec, data_types
from headrace.tensors.gpu.batch import DeviceBatch
from headrace.types import to_numpy_type

_DTYPES = data_types("FLOAT INT8 UINT8 INT16 UINT16 INT32 UINT32")


@operator(
    "audio_resample",
    old_names=("experimental.audio_resample",),
    inputs=Input("audio", "Signals ``(n,)`` or ``(n, channels)``.", dtypes=_DTYPES),
    args=(
        Arg(
            "in_rate",
            FloatArg,
            None,
            "Sampling rate of the input, in the unit of `out_rate`.",
            per_sample=True,
        ),
        Arg(
            "out_rate",
            FloatArg,
            None,
            "Sampling rate of the output, in the unit of `in_rate`.",
            per_sample=True,
        ),
        Arg(
            "scale",
            FloatArg,
            None,
            "`out_rate` divided by `in_rate`, in their place.",
            per_sample=True,
        ),
        Arg(
            "out_length",
            IntArg,
            None,
            "Number of samples of the output, in the place of rates.",
            per_sample=True,
        ),
        QUALITY,
        Arg(
            "dtype",
            DataTypeArg,
            None,
            "Element type of the output; by default that of the input. Another one has its own "
            "range: floating point numbers are loudness from -1 to 1, the largest integer is 1, "
            "and silence is 0, or the middle of the range of unsigned types.",
            choices=_DTYPES,
            said="Unsupported output type: {}",
        ),
    ),
    rules=(together("in_rate", "out_rate"), exactly_one("in_rate out_rate", "scale", "out_length")),
    output_docs=("The resampled signals, in the layout of the input.",),
)
class AudioResample(SampleOperator):
    """Changes the sampling rate of audio.

    Each output is a sum of the inputs around its place, weighted by a sinc function that a Hann
    window shortens. Before the beginning and after the end there are zeros. Nothing is filtered
    out when the rate becomes lower: what the lower rate cannot hold shows up as other tones.

    The output has ``ceil(n * out_rate / in_rate)`` samples.

    Examples
    --------
    >>> audio = fn.audio_resample(audio, in_rate=44100, out_rate=16000)
    >>> faster = fn.audio_resample(audio, scale=fn.random.uniform(range=(0.9, 1.1)))
    """

    def check_constants(self) -> None:
        check_quality(self.args.quality)

    def infer(self, audio: Spec) -> Spec:
        args = self.args
        _check_axes(audio.ndim)
        self._is_checked = audio.ndim is not None
        dtype = audio.dtype if args.dtype is None else args.dtype
        (self._by,) = filter(self.given, ("scale", "out_length", "out_rate"))
        self._rates = NumberTable(self, {"in_rate": 1.0, self._by: 1.0})
        self._dtype = np.dtype(to_numpy_type(dtype))
        self._scaled = dtype != audio.dtype
        self._window = sinc_window(args.quality)
        self._on_gpu: _gpu.AudioResampling | None = None
        return audio._replace(dtype=dtype)

    def plan(self, c: PlanContext, audio: Samples) -> Planned:
        if not self._is_checked:
            _check_axes(audio.ndim)
        shapes, steps = resampled(c, audio.shapes, self._by, self._rates)
        return Planned(shapes, (steps,))

    def cpu(self, c: SampleContext, audio: np.ndarray) -> np.ndarray:
        out = c.out
        resample(audio, c.row[0], self._window, out, c.temp, scaled=self._scaled)
        return out

    def gpu(self, c: BatchContext, audio: DeviceBatch) -> DeviceBatch:
        if self._on_gpu is None:
            self._on_gpu = _gpu.AudioResampling(self._window, scaled=self._scaled)
        planned = plan_batch(self, c, audio)
        out = c.empty(planned.shapes[0], self._dtype)
        self._on_gpu.run(c.queue, audio, planned.table[0], out)
        return out


def _check_axes(ndim: int | None) -> None:
    if ndim not in (None, 1, 2):
        raise ShapeError(
            f"Audio must have one axis, or two with the channels last, got {ndim}-dimensional "
            "data. `fn.reshape` and `fn.transpose` bring it into that form."
        )
