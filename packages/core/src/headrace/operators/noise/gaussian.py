"""`noise.gaussian`."""

from __future__ import annotations

import numpy as np

from headrace.kernels.cpu.cast import converter
from headrace.kernels.cpu.random import fill_normal
from headrace.kernels.gpu import noise as _gpu
from headrace.kernels.gpu import random as _gpu_random
from headrace.operators.noise.salt_and_pepper import NOISY
from headrace.operators.support.argument_types import FloatArg
from headrace.operators.support.arguments import numbers_of
from headrace.operators.support.operator import (
    BatchContext,
    SampleContext,
    SampleOperator,
    operator,
)
from headrace.operators.support.planning import PlanContext, Planned, Samples, plan_batch, repeated
from headrace.operators.support.schema import Arg, Spec
from headrace.tensors.gpu.batch import DeviceBatch
from headrace.types import to_numpy_type


@operator(
    "noise.gaussian",
    inputs=NOISY,
    args=(
        Arg("mean", FloatArg, 0.0, "Mean of what is added.", per_sample=True),
        Arg("stddev", FloatArg, 1.0, "Its standard deviation.", per_sample=True),
    ),
    output_docs=("The noisy data, of the input's type and layout.",),
    random=True,
)
class Gaussian(SampleOperator):
    """Adds a number of a normal distribution to each element.

    Sums are rounded, halves away from zero, and kept inside the range of an integer type.

    Examples
    --------
    >>> noisy = fn.noise.gaussian(images, stddev=fn.random.uniform(range=(0, 20)))
    """

    def infer(self, data: Spec) -> Spec:
        self._dtype = np.dtype(to_numpy_type(data.dtype))
        self._store = converter(np.dtype(np.float32), self._dtype, rounded=True)
        return data

    def plan(self, c: PlanContext, data: Samples) -> Planned:
        table = tuple(numbers_of(c, name, np.float64) for name in ("mean", "stddev"))
        return Planned(repeated(data.shapes, c.size), table)

    def cpu(self, c: SampleContext, data: np.ndarray) -> np.ndarray:
        out = c.out
        if not out.size:
            return out
        noise = c.temp((1, out.size), np.float32)
        mean, stddev = c.row
        fill_normal(noise, c.seed, c.iteration, c.index, mean, stddev)
        noise = noise.reshape(out.shape)
        np.add(noise, data, out=noise, casting="unsafe", dtype=np.float32)
        self._store(noise, out)
        return out

    def gpu(self, c: BatchContext, data: DeviceBatch) -> DeviceBatch:
        planned = plan_batch(self, c, data)
        noise = c.temp(data.extents, np.float32)
        _gpu_random.fill_normal(c.queue, noise, c.seed, c.iteration, c.indices, *planned.table)
        out = c.empty(data.extents, data.dtype)
        _gpu.add_noise(c.queue, data, noise, out)
        return out
