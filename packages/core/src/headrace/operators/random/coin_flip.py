"""`fn.random.coin_flip`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from headrace.errors import ArgumentValueError
from headrace.kernels.cpu.philox_state import DrawSeed
from headrace.kernels.cpu.random import fill_bernoulli
from headrace.kernels.gpu import random as _gpu_random
from headrace.operators.support.argument_types import FloatArg
from headrace.operators.support.arguments import numbers_of
from headrace.operators.support.operator import BatchContext, operator
from headrace.operators.support.random.batch_draw import BatchDraw, check_each
from headrace.operators.support.random.draw import DRAWABLE, DTYPE_ARG, SHAPE, SHAPE_LIKE
from headrace.operators.support.schema import Arg
from headrace.tensors.gpu.batch import DeviceBatch
from headrace.types import DALIDataType


@operator(
    "random.coin_flip",
    old_names=("coin_flip",),
    inputs=SHAPE_LIKE,
    args=(
        Arg(
            "probability",
            FloatArg,
            0.5,
            "Probability of a one. Below 0 there is none, above 1 nothing else.",
            per_sample=True,
        ),
        SHAPE,
        DTYPE_ARG,
    ),
    random=True,
)
class CoinFlip(BatchDraw):
    """Draw ones with a given probability, and zeros otherwise (int32 unless `dtype` is given)."""

    default_dtype = DALIDataType.INT32
    dtypes = (DALIDataType.BOOL, *DRAWABLE)
    work_dtype = np.dtype(np.uint8)

    def prepare(self) -> None:
        if self.args.probability is not None:
            _checked(self.args.probability)

    def fill(self, out: np.ndarray, args: Any, seed: DrawSeed, iteration: int, first: int) -> None:
        fill_bernoulli(out, seed, iteration, first, _checked(args.probability))

    def convert(self, drawn: np.ndarray, out: np.ndarray, args: Any) -> None:
        out[...] = drawn

    def fill_batch(self, c: BatchContext, out: DeviceBatch) -> None:
        probability = numbers_of(c, "probability", np.float64)
        check_each(c, ~np.isnan(probability), _checked, lambda i: float(probability[i]))
        probability = probability.clip(0.0, 1.0)
        _gpu_random.fill_bernoulli(c.queue, out, c.seed, c.iteration, c.indices, probability)


def _checked(probability: float) -> float:
    """Clamp a probability to 0 and 1, as DALI does."""
    if math.isnan(probability):
        raise ArgumentValueError(f"`probability`={probability} is not a number from 0 to 1.")
    return min(max(probability, 0.0), 1.0)
