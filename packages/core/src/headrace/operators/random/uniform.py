"""`fn.random.uniform`."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.errors import ArgumentValueError
from headrace.kernels.cpu.philox_state import DrawSeed
from headrace.kernels.cpu.random import fill_index, fill_uniform
from headrace.kernels.gpu import random as _gpu_random
from headrace.operators.support.argument_types import FloatListArg
from headrace.operators.support.arguments import vectors
from headrace.operators.support.operator import BatchContext, operator
from headrace.operators.support.random.batch_draw import BatchDraw, check_each
from headrace.operators.support.random.draw import (
    DTYPE_ARG,
    SHAPE,
    SHAPE_LIKE,
    real_work_dtype,
    store_drawn,
    store_rounded,
)
from headrace.operators.support.schema import Arg
from headrace.tensors.gpu.batch import DeviceBatch

_DEFAULT_RANGE = (-1.0, 1.0)


@operator(
    "random.uniform",
    old_names=("uniform",),
    inputs=SHAPE_LIKE,
    args=(
        Arg(
            "range",
            FloatListArg,
            _DEFAULT_RANGE,
            "Ends of a continuous distribution; the second is never drawn, unless rounding to an "
            "integer type gives it. For an integer type, what the ends have behind the point is "
            "cut off.",
            per_sample=True,
            shape_of="(low, high)",
        ),
        Arg(
            "values",
            FloatListArg,
            None,
            "Draw from these values, each as likely as any other, in place of a range.",
            per_sample=True,
            shape_of="(number of values,)",
        ),
        SHAPE,
        DTYPE_ARG,
    ),
    random=True,
)
class Uniform(BatchDraw):
    """Draw random numbers from a range, or from a list of values, uniformly."""

    def prepare(self) -> None:
        self.looks_up = self.given("values")
        if self.looks_up and ("range" in self.tensor_args or self.args.range != _DEFAULT_RANGE):
            raise ArgumentValueError(
                "`values` and `range` exclude one another: give the values to choose from, or "
                "the range to draw from."
            )
        self.work_dtype = np.dtype(np.int64) if self.looks_up else real_work_dtype(self.dtype)
        if self.looks_up and self.args.values is not None:
            self._table = self._value_table(self.args.values)
        elif not self.looks_up and self.args.range is not None:
            _checked_range(self.args.range)

    def fill(self, out: np.ndarray, args: Any, seed: DrawSeed, iteration: int, first: int) -> None:
        if self.looks_up:
            fill_index(out, seed, iteration, first, len(args.values))
            return
        low, high = _checked_range(args.range)
        if self.dtype.kind in "iu":
            low, high = float(np.trunc(low)), float(np.trunc(high))
        fill_uniform(out, seed, iteration, first, low, high, single=self.single)

    def convert(self, drawn: np.ndarray, out: np.ndarray, args: Any) -> None:
        if self.looks_up:
            same = args.values is self.args.values
            table = self._table if same else self._value_table(args.values)
            np.take(table, drawn, out=out, mode="clip")
        else:
            store_drawn(drawn, out)

    def fill_batch(self, c: BatchContext, out: DeviceBatch) -> None:
        if self.looks_up:
            _gpu_random.fill_choices(
                c.queue, out, c.seed, c.iteration, c.indices, self._value_tables(c)
            )
            return
        ends = vectors(c, "range", 2)
        if ends is None:  # some sample has not two, unless there is none at all
            each = c.values("range")
            check_each(c, np.array([len(v) == 2 for v in each]), _checked_range, each.__getitem__)
            ends = np.empty((0, 2))
        low, high = ends[:, 0], ends[:, 1]
        check_each(c, low < high, _checked_range, lambda i: tuple(ends[i].tolist()))
        if self.dtype.kind in "iu":
            low, high = np.trunc(low), np.trunc(high)
        _gpu_random.fill_uniform(c.queue, out, c.seed, c.iteration, c.indices, low, high)

    def _value_tables(self, c: BatchContext) -> list[np.ndarray]:
        if "values" not in self.tensor_args:
            return [self._table]
        each = c.values("values")
        check_each(c, np.array([bool(v) for v in each]), self._value_table, each.__getitem__)
        return [self._value_table(values) for values in each]

    def _value_table(self, values: tuple[float, ...]) -> np.ndarray:
        if not values:
            raise ArgumentValueError("`values` is empty: there is nothing to choose from.")
        table = np.empty(len(values), self.dtype)
        store_rounded(np.asarray(values, np.float64), table)
        return table


def _checked_range(value: tuple[float, ...]) -> tuple[float, float]:
    if len(value) != 2:
        raise ArgumentValueError(
            f"`range`={value} has {len(value)} elements; it takes two, [low, high)."
        )
    low, high = value
    if not low < high:
        raise ArgumentValueError(f"`range`={value} is empty: low must be less than high.")
    return low, high
