"""`fn.random.beta`."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.errors import ArgumentValueError
from headrace.kernels.cpu.philox_state import DrawSeed
from headrace.kernels.cpu.random import fill_beta
from headrace.operators.support.argument_types import FloatArg
from headrace.operators.support.operator import operator
from headrace.operators.support.random.draw import DTYPE_ARG, SHAPE, SHAPE_LIKE, Draw
from headrace.operators.support.schema import Arg
from headrace.types import DALIDataType

_LARGEST = float(np.finfo(np.float32).max)


@operator(
    "random.beta",
    inputs=SHAPE_LIKE,
    args=(
        Arg(
            "alpha",
            FloatArg,
            1.0,
            "First parameter of the distribution, positive.",
            per_sample=True,
        ),
        Arg(
            "beta",
            FloatArg,
            1.0,
            "Second parameter of the distribution, positive.",
            per_sample=True,
        ),
        SHAPE,
        DTYPE_ARG,
    ),
    random=True,
    devices=("cpu",),
)
class Beta(Draw):
    """Draw random numbers from 0 to 1 with a beta distribution."""

    dtypes = (DALIDataType.FLOAT, DALIDataType.FLOAT64)

    def prepare(self) -> None:
        self.work_dtype = self.dtype
        for name in ("alpha", "beta"):
            if getattr(self.args, name) is not None:
                _checked(name, getattr(self.args, name))

    def fill(self, out: np.ndarray, args: Any, seed: DrawSeed, iteration: int, first: int) -> None:
        alpha, beta = _checked("alpha", args.alpha), _checked("beta", args.beta)
        fill_beta(out, seed, iteration, first, alpha, beta, single=self.single)


def _checked(name: str, value: float) -> float:
    if not 0.0 < value <= _LARGEST:
        raise ArgumentValueError(
            f"The `{name}` must be a positive float32, got {value}; that is, at most {_LARGEST:g}."
        )
    return value
