"""`nonsilent_region`."""

from __future__ import annotations

import numpy as np

from headrace.errors import ArgumentValueError, ShapeError
from headrace.kernels.gpu import nonsilent as _gpu
from headrace.operators.support.argument_types import FloatArg, IntArg
from headrace.operators.support.operator import (
    BatchContext,
    SampleContext,
    SampleOperator,
    operator,
)
from headrace.operators.support.schema import Arg, Input, Spec
from headrace.tensors.gpu.batch import DeviceBatch
from headrace.types import DALIDataType, is_float
from headrace.types.dtypes import INTEGERS


@operator(
    "nonsilent_region",
    inputs=Input("audio", "A signal of one channel.", dtypes=(*INTEGERS, DALIDataType.FLOAT)),
    args=(
        Arg(
            "cutoff_db",
            FloatArg,
            -60.0,
            "Power from which on the signal is not silent, in dB relative to the reference.",
        ),
        Arg("window_length", IntArg, 2048, "Number of samples that power is averaged over."),
        Arg(
            "reference_power",
            FloatArg,
            None,
            "Power that is 0 dB; without it, the power of the loudest window.",
        ),
        Arg(
            "reset_interval",
            IntArg,
            8192,
            "Number of samples after which the running sum of squares is computed anew, so that "
            "errors of rounding do not add up: a multiple of `window_length`, or -1 for never. "
            "Sums of integers of up to 16 bits are exact anyway, and for no integers does it have "
            "to be a multiple.",
        ),
    ),
    num_outputs=2,
    output_docs=(
        "Number of the first sample that is not silent, an int32 scalar.",
        "Number of samples that are not silent, an int32 scalar: 0 if all of the signal is silent.",
    ),
)
class NonsilentRegion(SampleOperator):
    """Finds where a signal begins and ends between the silence before and after it.

    The signal is not silent in windows of `window_length` samples whose mean square reaches the
    threshold, and all of such a window counts. A signal shorter than the window is one window.

    Examples
    --------
    >>> begin, length = fn.nonsilent_region(audio, cutoff_db=-40)
    >>> speech = fn.slice(audio, begin, length, axes=[0])
    """

    def infer(self, audio: Spec) -> tuple[Spec, Spec]:
        args = self.args
        _check_axes(audio.ndim)
        window, reset = args.window_length, args.reset_interval
        if window < 1:
            raise ArgumentValueError(f"`window_length` is {window}, but must be at least 1.")
        if reset != -1 and (reset < 1 or reset % window):
            if is_float(audio.dtype):
                raise ArgumentValueError(
                    f"`reset_interval` is {reset}, but must be a multiple of `window_length`, "
                    f"which is {window}, or -1."
                )
            reset = -1
        self._reset = reset
        if args.reference_power is not None and not args.reference_power > 0:
            raise ArgumentValueError(
                f"`reference_power` is {args.reference_power:g}, but must be positive. Leave it "
                "out for the loudest window's."
            )
        from headrace.kernels.cpu.audio.nonsilent import nonsilent_region

        self._find = nonsilent_region
        with np.errstate(over="ignore"):
            self._cutoff = float(np.float64(10) ** (args.cutoff_db / 10))
        return Spec(DALIDataType.INT32, 0), Spec(DALIDataType.INT32, 0)

    def cpu(self, c: SampleContext, audio: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        args = self.args
        _check_axes(audio.ndim)
        found = self._find(
            audio, args.window_length, self._cutoff, args.reference_power, self._reset
        )
        begin, length = c.empty((), np.int32, 0), c.empty((), np.int32, 1)
        begin[...], length[...] = found
        return begin, length

    def gpu(self, c: BatchContext, audio: DeviceBatch) -> tuple[DeviceBatch, DeviceBatch]:
        args = self.args
        _check_axes(audio.ndim)
        begin, length = c.empty((), np.int32, 0), c.empty((), np.int32, 1)
        _gpu.nonsilent_regions(
            c.queue,
            audio,
            args.window_length,
            self._cutoff,
            args.reference_power,
            self._reset,
            begin,
            length,
        )
        return begin, length


def _check_axes(ndim: int | None) -> None:
    if ndim not in (None, 1):
        raise ShapeError(
            f"The signal must have one axis, got {ndim}-dimensional data. Mix or pick a channel "
            "first: `fn.decoders.audio(..., downmix=True)`, or `audio[:, 0]`."
        )
