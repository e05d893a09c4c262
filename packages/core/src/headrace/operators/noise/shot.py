"""`noise.shot`."""

from __future__ import annotations

import numpy as np

from headrace.kernels.cpu import noise as _cpu
from headrace.kernels.cpu.cast import converter
from headrace.kernels.cpu.random import fill_normal
from headrace.kernels.gpu import noise as _gpu
from headrace.kernels.gpu import random as _gpu_random
from headrace.operators.noise.salt_and_pepper import NOISY
from headrace.operators.support.argument_types import FloatArg
from headrace.operators.support.arguments import scalars
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
    "noise.shot",
    inputs=NOISY,
    args=(
        Arg(
            "factor",
            FloatArg,
            None,
            "What a number of the Poisson distribution is multiplied by: the larger, the noisier; "
            "12 if not given, which is what DALI takes, too.",
            per_sample=True,
        ),
    ),
    output_docs=("The noisy data, of the input's type and layout.",),
    random=True,
)
class Shot(SampleOperator):
    """Draws each element anew, from the Poisson distribution of the mean ``element / factor``.

    Elements whose mean is not positive or not finite become zero. Products with `factor` are
    rounded, halves away from zero, and kept inside the range of an integer type.

    Examples
    --------
    >>> noisy = fn.noise.shot(images, factor=fn.random.uniform(range=(1, 40)))
    """

    def infer(self, data: Spec) -> Spec:
        self._store = converter(
            np.dtype(np.float32), np.dtype(to_numpy_type(data.dtype)), rounded=True
        )
        return data

    def plan(self, c: PlanContext, data: Samples) -> Planned:
        shapes = repeated(data.shapes, c.size)
        factors = scalars(c, "factor", np.float32)
        return Planned(shapes, (np.full(c.size, 12, np.float32) if factors is None else factors,))

    def cpu(self, c: SampleContext, data: np.ndarray) -> np.ndarray:
        out = c.out
        if not out.size:
            return out
        drawn, rates = c.temp((1, out.size), np.float32), c.temp(out.shape, np.float32)
        factor = np.float32(c.row[0])
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            np.divide(data, factor, out=rates, casting="unsafe", dtype=np.float32)
        fill_normal(drawn, c.seed, c.iteration, c.index, 0.0, 1.0)
        _cpu.poisson(rates.reshape(-1), drawn[0])
        drawn *= factor
        self._store(drawn.reshape(out.shape), out)
        return out

    def gpu(self, c: BatchContext, data: DeviceBatch) -> DeviceBatch:
        (factors,) = plan_batch(self, c, data).table
        normals, out = c.temp(data.extents, np.float32), c.empty(data.extents, data.dtype)
        zeros, ones = np.zeros(c.size), np.ones(c.size)
        _gpu_random.fill_normal(c.queue, normals, c.seed, c.iteration, c.indices, zeros, ones)
        _gpu.shot(c.queue, data, normals, factors, out)
        return out
