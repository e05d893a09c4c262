"""`fn.random.choice`."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from penstock.errors import ArgumentValueError, DataTypeError, ShapeError
from penstock.kernels.cpu.random import fill_index, sample_uniforms
from penstock.operators.support.argument_types import FloatListArg
from penstock.operators.support.operator import SampleContext, operator
from penstock.operators.support.random.draw import SHAPE, SHAPE_LIKE, Shaped
from penstock.operators.support.schema import Arg, Input, Spec
from penstock.types import DALIDataType

_SUM_TOLERANCE = 1e-4
_NOT_A_COUNT = (
    DALIDataType.BOOL,
    DALIDataType.FLOAT16,
    DALIDataType.FLOAT,
    DALIDataType.FLOAT64,
)


@operator(
    "random.choice",
    inputs=(
        Input("a", "What to choose from, along the first axis; or a number n: from 0 to n - 1."),
        SHAPE_LIKE,
    ),
    args=(
        Arg(
            "p",
            FloatListArg,
            None,
            "Probability of each choice; their sum is 1. All are as likely when not given.",
            per_sample=True,
            shape_of="(number of choices,)",
        ),
        SHAPE,
    ),
    random=True,
    keeps_metadata=False,
    devices=("cpu",),
)
class Choice(Shaped):
    """Choose elements of `a` at random, each independently of the others.

    The output has the element type of `a`. If `a` has more axes than one, its elements are the
    slices along the first axis, and their axes follow those of `shape`.
    """

    def infer(self, a: Spec, shape_like: Spec | None = None) -> Spec:
        if a.ndim == 0 and a.dtype in _NOT_A_COUNT:
            raise DataTypeError(
                f"`a` has no axes and the type {a.dtype.name}: the number of choices must have an "
                "integer type. `fn.cast` converts it."
            )
        drawn = self.find_shape(shape_like)
        if drawn is None or a.ndim is None:
            return Spec(a.dtype, None)
        # One axis of choices takes the place of the axis chosen from.
        layout = {0: a.layout[1:], 1: a.layout}.get(drawn, "")
        return Spec(a.dtype, drawn + max(a.ndim - 1, 0), layout)

    def cpu(
        self, c: SampleContext, a: np.ndarray, shape_like: np.ndarray | None = None
    ) -> np.ndarray:
        shape = self.sample_shape(c, shape_like)
        count = a.shape[0] if a.ndim else int(a)
        if count <= 0:
            raise ShapeError(f"There is nothing to choose from: `a` has {count} choices.")
        if c.args.p is None:
            indices = c.temp((1, math.prod(shape)), np.int64)
            fill_index(indices, c.seed, c.iteration, c.index, count, packed=a.ndim > 1)
            indices = indices.reshape(shape)
        else:
            limits = _cumulated(c.args.p, count)
            uniforms = sample_uniforms(
                c.seed, c.iteration, c.index, math.prod(shape), packed=a.ndim > 1
            )
            indices = np.searchsorted(limits, uniforms, side="right").reshape(shape)
        if a.ndim == 0:
            out = c.empty(shape, a.dtype)
            out[...] = indices
            return out
        out = c.empty(shape + a.shape[1:], a.dtype)
        np.take(a, indices, axis=0, out=out, mode="clip")
        return out


def _cumulated(p: Sequence[float], count: int) -> np.ndarray:
    """Upper limits of the choices' parts of [0, 1); the last one is 1 and is not among them."""
    if len(p) != count:
        raise ArgumentValueError(f"`p` has {len(p)} probabilities for {count} choices.")
    if not all(0.0 <= value <= 1.0 for value in p):
        raise ArgumentValueError(f"`p`={tuple(p)} holds numbers that are not from 0 to 1.")
    total = sum(p)
    if abs(total - 1.0) >= _SUM_TOLERANCE:
        raise ArgumentValueError(f"`p`={tuple(p)} has the sum {total}; it must be 1.")
    limits = np.cumsum(p) / total
    # Rounding must not make the last choices with a probability of zero possible.
    last = count - 1 - next(i for i, value in enumerate(reversed(p)) if value > 0.0)
    return limits[:last]
