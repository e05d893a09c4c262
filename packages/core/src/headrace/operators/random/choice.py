"""`fn.random.choice`."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from headrace.errors import ArgumentValueError, DataTypeError, ShapeError
from headrace.kernels.cpu.random import fill_index, sample_uniforms
from headrace.operators.support.argument_types import FloatListArg
from headrace.operators.support.operator import SampleContext, operator
from headrace.operators.support.random.draw import SHAPE, SHAPE_LIKE, ShapedDraw
from headrace.operators.support.schema import Arg, Input, Spec
from headrace.types import DALIDataType
from headrace.types.constant import ENUM_ELEMENT

_SUM_TOLERANCE = 1e-4
_MOST = 2**63 - 1
_COUNTS = tuple(DALIDataType[f"{sign}INT{bits}"] for sign in ("U", "") for bits in (8, 16, 32, 64))


@operator(
    "random.choice",
    inputs=(
        Input("a", "Values to choose from, along the first axis; or a number n: from 0 to n - 1."),
        SHAPE_LIKE,
    ),
    args=(
        Arg(
            "p",
            FloatListArg,
            None,
            "Probability of each choice, or one that all have; their sum is 1. All are as likely "
            "when not given.",
            per_sample=True,
            shape_of="(number of choices,)",
        ),
        SHAPE,
    ),
    random=True,
    devices=("cpu",),
)
class Choice(ShapedDraw):
    """Choose elements of `a` at random, each independently of the others.

    The output has the element type of `a`. If `a` has more axes than one, its elements are the
    slices along the first axis, and their axes follow those of `shape`.
    """

    def infer(self, a: Spec, shape_like: Spec | None = None) -> Spec:
        if a.ndim == 0 and a.dtype not in _COUNTS:
            enumerations = {element: c.__name__ for c, element in ENUM_ELEMENT.items()}
            name = enumerations.get(a.dtype, a.dtype.name.lower())
            raise DataTypeError(
                f"Data type {name} is not supported for 0D inputs. Supported types "
                f"are: {', '.join(t.name.lower() for t in _COUNTS)}. `fn.cast` converts to one."
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
            raise ShapeError(
                f"Expected positive number of elements for sampling, got: {count} for sample: "
                f"{c.index}. There is nothing to choose from."
            )
        if count > _MOST:
            raise ShapeError(f"At most {_MOST} elements can be chosen from, got: {count}.")
        if c.args.p is None:
            indices = c.temp((1, math.prod(shape)), np.int64)
            fill_index(indices, c.seed, c.iteration, c.index, count, packed=a.ndim > 1)
            indices = indices.reshape(shape)
        else:
            limits = _cumulated(c.args.p, count, c.index)
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


def _cumulated(p: Sequence[float], count: int, sample: int) -> np.ndarray:
    """Upper limits of the choices' parts of [0, 1); the last one is 1 and is not among them."""
    if len(p) == 1:
        p = tuple(p) * count
    if len(p) != count:
        raise ArgumentValueError(
            f'Unexpected shape for argument "p". Expected {{{count}}}, but got {{{len(p)}}}: one '
            "probability for each choice."
        )
    for k, value in enumerate(p):
        if not 0.0 <= value <= 1.0:
            raise ArgumentValueError(
                f"Probabilities must be in range [0, 1], but got: {value:g} for sample: {sample} "
                f"at index {k}."
            )
    total = sum(p)
    if abs(total - 1.0) >= _SUM_TOLERANCE:
        raise ArgumentValueError(
            f"Sum of probabilities must be 1.0, but got {total:g} for sample: {sample}."
        )
    limits = np.cumsum(p) / total
    # Rounding must not make the last choices with a probability of zero possible.
    last = count - 1 - next(i for i, value in enumerate(reversed(p)) if value > 0.0)
    return limits[:last]
