"""`spectrogram`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.errors import ArgumentValueError, ShapeError
from penstock.kernels.cpu.spectrogram import Frames, SpectrumPlan, hann_window
from penstock.operators.support.argument_types import BoolArg, FloatListArg, IntArg, LayoutArg
from penstock.operators.support.audio.lazy_spectrum import LazySpectrum
from penstock.operators.support.audio.spectrum_batch import SpectrumBatch
from penstock.operators.support.operator import (
    BatchContext,
    SampleContext,
    SampleOperator,
    operator,
)
from penstock.operators.support.schema import Arg, Input, Spec
from penstock.tensors.gpu.batch import shape_rows, volumes
from penstock.types import DALIDataType

if TYPE_CHECKING:
    from penstock.kernels.gpu.spectrogram import DevicePlan
    from penstock.tensors.gpu.batch import DeviceBatch

POWER = Arg(
    "power",
    IntArg,
    2,
    "Exponent of the magnitudes: 2 for powers, the sum of the squares of real and imaginary part; "
    "1 for its root.",
    choices=(1, 2),
)


_MOST_SHAPES = 256


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
        POWER,
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
        Arg("window_step", IntArg, 256, "How many elements windows are apart."),
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

    def infer(self, *inputs: Spec) -> Spec:
        args = self.args
        length, step, nfft = args.window_length, args.window_step, args.nfft
        for name, value in (("window_length", length), ("window_step", step)):
            if value < 1:
                raise ArgumentValueError(f"`{name}` is {value}; it has to be at least 1.")
        nfft = length if nfft is None else nfft
        if nfft < length:
            raise ArgumentValueError(
                f"`nfft` is {nfft}; it has to be at least `window_length`, which is {length}. "
                "Longer windows cannot be transformed as a whole."
            )
        if args.window_fn is None:
            window = hann_window(length)
        else:
            window = np.array(args.window_fn, np.float32)
            if window.size != length:
                raise ArgumentValueError(
                    f"`window_fn` has {window.size} weights; it needs as many as `window_length`, "
                    f"which is {length}."
                )
        frames = Frames(window, step, center=args.center_windows, reflect=args.reflect_padding)
        self._plan = SpectrumPlan(frames, nfft, squared=args.power == 2)
        self._device_plan: DevicePlan | None = None
        self._counts: dict[tuple[int, ...], np.ndarray] = {}
        """Numbers of frames of batches of one shape that came up."""
        self._time_first = args.layout == "tf"
        return Spec(DALIDataType.FLOAT, 2, args.layout)

    returns_lazy = (LazySpectrum, SpectrumBatch)

    def cpu(self, c: SampleContext, *inputs: np.ndarray) -> LazySpectrum:
        data = inputs[0]
        size = data.size
        if size == 0 or (data.shape and size not in data.shape):
            raise _wrong_shape(data.shape)
        count = int(self._plan.frames.count(size))
        if count < 1:
            raise self._too_short(size)
        signal = data if data.ndim == 1 else data.reshape(-1)
        return LazySpectrum(c, self._plan, signal, count, self._time_first)

    def gpu(self, c: BatchContext, *inputs: Any) -> SpectrumBatch:
        data: DeviceBatch = inputs[0]
        if self._device_plan is None:
            from penstock.kernels.gpu.spectrogram import DevicePlan

            self._device_plan = DevicePlan(self._plan)
        shape = data.uniform_shape
        counts = None if shape is None else self._counts.get(shape)
        if counts is None:
            counts = self._frame_counts(c, shape_rows(data))
            if shape is not None and len(self._counts) < _MOST_SHAPES:
                self._counts[shape] = counts
        return SpectrumBatch(self._device_plan, data, counts, time_first=self._time_first)

    def _frame_counts(self, c: BatchContext, shapes: np.ndarray) -> np.ndarray:
        """How many frames signals of these shapes have, ``(samples,)``."""
        sizes = volumes(shapes)
        if shapes.shape[1] == 1:
            wrong = sizes == 0
        else:
            wrong = (sizes == 0) | ((shapes > 1).sum(axis=1) > 1)
        if wrong.any():
            index = int(wrong.argmax())
            error = _wrong_shape(tuple(shapes[index].tolist()))
            raise c.located(error, index) from error
        counts = self._plan.frames.count(sizes)
        if counts.min(initial=1) < 1:
            index = int((counts < 1).argmax())
            error = self._too_short(int(sizes[index]))
            raise c.located(error, index) from error
        return counts  # type: ignore[no-any-return]

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
