"""`spectrogram`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from headrace.errors import ArgumentValueError, ShapeError
from headrace.kernels.cpu.spectrogram import Framing, SpectrumPlan, hann_window
from headrace.kernels.gpu import spectrogram as _gpu
from headrace.operators.support.argument_types import BoolArg, FloatListArg, IntArg, LayoutArg
from headrace.operators.support.audio.lazy_spectrum import LazySpectrum
from headrace.operators.support.audio.spectrum_batch import SpectrumBatch
from headrace.operators.support.audio.spectrum_steps import SpectrumSteps
from headrace.operators.support.compiled_steps import CompiledStepContext, SampleColumns
from headrace.operators.support.operator import BatchContext, ChunkContext, SampleOperator, operator
from headrace.operators.support.planning import PlanContext, Planned, Samples, plan_batch
from headrace.operators.support.schema import Arg, Input, Spec
from headrace.tensors.gpu.batch import DeviceBatch, volumes
from headrace.tensors.rows import Rows
from headrace.types import DALIDataType

POWER = Arg(
    "power",
    IntArg,
    2,
    "Exponent of the magnitudes: 2 for powers, the sum of the squares of real and imaginary part; "
    "1 for its root.",
    choices=(1, 2),
)


@operator(
    "spectrogram",
    inputs=Input(
        "signal",
        "A signal, ``(n,)``; axes with an extent of 1 may stand beside it.",
        dtypes=(DALIDataType.FLOAT,),
    ),
    args=(
        Arg(
            "center_windows",
            BoolArg,
            True,
            "Whether windows are centred on multiples of `window_step`, so that the first and last "
            "ones reach beyond the signal. Otherwise they start there, and only those are taken "
            "that lie inside; for a signal that lacks less than `window_step` elements of a single "
            "window, that one is taken, filled with zeros.",
        ),
        Arg(
            "layout",
            LayoutArg,
            "ft",
            "Layout of the output: frequencies and then time, or the other way round.",
            choices=("ft", "tf"),
        ),
        Arg(
            "nfft",
            IntArg,
            None,
            "Length of the Fourier transforms, at least `window_length`, which it is when not "
            "given: windows are continued by zeros. Any length is taken; products of 2, 3 and 5 "
            "are the fastest.",
        ),
        replace(POWER, late=True),
        Arg(
            "reflect_padding",
            BoolArg,
            True,
            "Whether the signal is mirrored beyond its ends, without repeating the outermost "
            "element, where centred windows reach there. Otherwise it is 0.",
        ),
        Arg(
            "window_fn",
            FloatListArg,
            None,
            "Weights of a window's elements, as many as `window_length`. When not given, a Hann "
            "window: ``0.5 * (1 - cos(2 * pi * (k + 0.5) / window_length))``.",
        ),
        Arg("window_length", IntArg, 512, "Number of the signal's elements in a window."),
        Arg("window_step", IntArg, 256, "Distance between windows, in elements."),
    ),
    output_docs=("float32 ``(nfft // 2 + 1, windows)``, or transposed: see `layout`.",),
)
class Spectrogram(SampleOperator):
    """Power of the frequencies of a signal over time.

    The signal is cut into windows that may overlap; each is weighted and Fourier-transformed. The
    output has the power, or the magnitude, of the frequencies from 0 to half of the sampling rate.

    Examples
    --------
    25 ms windows every 10 ms, at 16 kHz, on the mel scale and in decibels:

    >>> powers = fn.spectrogram(audio, nfft=512, window_length=400, window_step=160)
    >>> mel = fn.mel_filter_bank(powers, sample_rate=16000, nfilter=80)
    >>> decibels = fn.to_decibels(mel, cutoff_db=-80)
    """

    def check_constants(self) -> None:
        args = self.args
        length, step = args.window_length, args.window_step
        for name, value in (("window_length", length), ("window_step", step)):
            if value < 1:
                raise ArgumentValueError(f"`{name}` is {value}; it has to be at least 1.")
        if args.window_fn is not None and len(args.window_fn) != length:
            raise ArgumentValueError(
                f"`window_fn` has {len(args.window_fn)} weights; it needs as many as "
                f"`window_length`, which is {length}."
            )

    def infer(self, *inputs: Spec) -> Spec:
        args = self.args
        length, step = args.window_length, args.window_step
        nfft = length if args.nfft is None else args.nfft
        if nfft < length:
            raise ArgumentValueError(
                f"`nfft` is {nfft}; it has to be at least `window_length`, which is {length}. "
                "Longer windows cannot be transformed as a whole."
            )
        if args.window_fn is None:
            window = hann_window(length)
        else:
            window = np.array(args.window_fn, np.float32)
        frames = Framing(window, step, center=args.center_windows, reflect=args.reflect_padding)
        self._plan = SpectrumPlan(frames, nfft, squared=args.power == 2)
        self._device_plan: _gpu.DevicePlan | None = None
        self._time_first = args.layout == "tf"
        return Spec(DALIDataType.FLOAT, 2, args.layout)

    returns_lazy = (LazySpectrum, SpectrumBatch)
    chunked = True

    def plan(self, c: PlanContext, *inputs: Samples) -> Planned:
        shapes = inputs[0].shapes
        sizes = volumes(shapes)
        wrong = (sizes == 0) | ((shapes > 1).sum(axis=1) > 1)
        if wrong.any():
            raise _wrong_shape(tuple(shapes[int(wrong.argmax())].tolist()))
        counts = self._plan.frames.count(sizes)
        if counts.min(initial=1) < 1:
            raise self._too_short(int(sizes[int((counts < 1).argmax())]))
        out = np.full((len(counts), 2), self._plan.bins, np.int64)
        out[:, 0 if self._time_first else 1] = counts
        return Planned(out, (counts,))

    def cpu_chunk(self, c: ChunkContext, *inputs: Rows) -> LazySpectrum:
        counts = np.asarray(c.table[0], np.int64)
        return LazySpectrum(c, self._plan, inputs[0], counts, self._time_first)

    def compiled(self, c: CompiledStepContext, *inputs: SampleColumns) -> SpectrumSteps | None:
        if self._plan.tables is None:
            return None
        return SpectrumSteps(self._plan, inputs[0], time_first=self._time_first)

    def gpu(self, c: BatchContext, *inputs: Any) -> SpectrumBatch:
        data: DeviceBatch = inputs[0]
        if self._device_plan is None:
            self._device_plan = _gpu.DevicePlan(self._plan)
        (counts,) = plan_batch(self, c, data).table
        return SpectrumBatch(self._device_plan, data, counts, time_first=self._time_first)

    def _too_short(self, size: int) -> ShapeError:
        frames = self._plan.frames
        return ShapeError(
            f"A signal of {size} elements is too short for a window of `window_length`="
            f"{frames.length}: it needs at least {frames.length - frames.step + 1} with "
            f"`window_step`={frames.step}. With `center_windows` any length is taken."
        )


def _wrong_shape(shape: tuple[int, ...]) -> ShapeError:
    if 0 in shape:
        return ShapeError(
            f"A signal is empty: its shape is {shape}. `fn.slice` with "
            '`out_of_bounds_policy="pad"` makes it longer.'
        )
    return ShapeError(
        f"A signal has the shape {shape}; expected a single axis, besides those with an extent of "
        "1. Channels have to be separate samples, or mixed: decoders have `downmix`."
    )
