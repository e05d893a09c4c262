"""`fn.random.normal`."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.kernels.cpu.philox_state import DrawSeed
from headrace.kernels.cpu.random import fill_normal
from headrace.kernels.gpu import random as _gpu_random
from headrace.operators.support.argument_types import FloatArg
from headrace.operators.support.arguments import numbers_of
from headrace.operators.support.operator import BatchContext, operator
from headrace.operators.support.random.batch_draw import BatchDraw
from headrace.operators.support.random.draw import DTYPE_ARG, SHAPE, SHAPE_LIKE, real_work_dtype
from headrace.operators.support.schema import Arg
from headrace.tensors.gpu.batch import DeviceBatch


@operator(
    "random.normal",
    old_names=("normal_distribution",),
    inputs=SHAPE_LIKE,
    args=(
        Arg("mean", FloatArg, 0.0, "Mean of the distribution.", per_sample=True),
        Arg("stddev", FloatArg, 1.0, "Standard deviation of the distribution.", per_sample=True),
        SHAPE,
        DTYPE_ARG,
    ),
    random=True,
)
class Normal(BatchDraw):
    """Draw random numbers from a normal distribution."""

    def prepare(self) -> None:
        self.work_dtype = real_work_dtype(self.dtype)

    def fill(self, out: np.ndarray, args: Any, seed: DrawSeed, iteration: int, first: int) -> None:
        fill_normal(out, seed, iteration, first, args.mean, args.stddev, single=self.single)

    def fill_batch(self, c: BatchContext, out: DeviceBatch) -> None:
        mean, stddev = (numbers_of(c, name, np.float64) for name in ("mean", "stddev"))
        _gpu_random.fill_normal(c.queue, out, c.seed, c.iteration, c.indices, mean, stddev)
