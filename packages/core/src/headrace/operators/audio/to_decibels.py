"""`to_decibels`."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.errors import ArgumentValueError
from headrace.kernels.cpu.decibels import decibel_scale, to_decibels
from headrace.kernels.gpu import decibels as _gpu_decibels
from headrace.operators.support.argument_types import FloatArg
from headrace.operators.support.audio.lazy_spectrum import LazySpectrum
from headrace.operators.support.audio.spectrum_batch import SpectrumBatch
from headrace.operators.support.audio.spectrum_steps import SpectrumSteps
from headrace.operators.support.compiled_steps import CompiledStepContext, SampleColumns
from headrace.operators.support.operator import BatchContext, ChunkContext, SampleOperator, operator
from headrace.operators.support.planning import PlanContext, Planned, Samples
from headrace.operators.support.schema import Arg, Input, Spec
from headrace.tensors.gpu.batch import DeviceBatch
from headrace.tensors.rows import Rows
from headrace.types import DALIDataType


@operator(
    "to_decibels",
    inputs=Input("data", "Magnitudes or powers of any shape.", dtypes=(DALIDataType.FLOAT,)),
    args=(
        Arg(
            "cutoff_db",
            FloatArg,
            -200.0,
            "Least value of the output, decibels; smaller ones, and those of what is 0, negative "
            "or not a number, become this one.",
        ),
        Arg(
            "multiplier",
            FloatArg,
            10.0,
            "Factor of the logarithm: 10 for powers, 20 for magnitudes.",
        ),
        Arg(
            "reference",
            FloatArg,
            None,
            "Value that is 0 dB. When not given, the largest of each sample, or 1 where none is "
            "above 0.",
        ),
    ),
    output_docs=("float32 decibels, in the layout of the input.",),
)
class ToDecibels(SampleOperator):
    """Turns magnitudes or powers into decibels.

    The output is ``multiplier * log10(max(data / reference, 10 ** (cutoff_db / multiplier)))``.

    Examples
    --------
    >>> decibels = fn.to_decibels(fn.spectrogram(audio), reference=1.0, cutoff_db=-80)
    """

    def check_constants(self) -> None:
        if self.args.reference == 0:
            raise ArgumentValueError(
                "`reference` argument can't be zero: nothing has a ratio to it. Leave it out for "
                "the largest value of each sample."
            )

    def infer(self, *inputs: Spec) -> Spec:
        args = self.args
        self._scale = decibel_scale(args.reference, args.cutoff_db, args.multiplier)
        return inputs[0]

    chunked = True

    def plan(self, c: PlanContext, *inputs: Samples) -> Planned:
        return Planned(inputs[0].shapes)

    def cpu_chunk(self, c: ChunkContext, *inputs: Any) -> Rows:
        data = inputs[0]
        out = c.out()
        if isinstance(data, LazySpectrum):
            data.write(out, self._scale)
            return out
        for source, own in zip(data, out, strict=True):
            to_decibels(source, self._scale, own)
        return out

    compiled_takes = (SpectrumSteps,)

    def compiled(self, c: CompiledStepContext, *inputs: Any) -> SampleColumns | None:
        data = inputs[0]
        return data.materialise(c, self._scale) if isinstance(data, SpectrumSteps) else None

    takes = (LazySpectrum, SpectrumBatch)

    def gpu(self, c: BatchContext, *inputs: Any) -> DeviceBatch:
        data, scale = inputs[0], self._scale
        out = c.empty(data.extents, np.float32)
        if not isinstance(data, SpectrumBatch):
            _gpu_decibels.to_decibels(c.queue, data, scale, out)
        elif scale.reference != 0:
            data.write(c.queue, out, scale)
        else:
            # The largest value is only known when all of a sample is there.
            largest = _gpu_decibels.zeros(c.queue, len(data))
            data.write(c.queue, out, largest=largest)
            _gpu_decibels.to_decibels(c.queue, out, scale, out, largest)
        return out
