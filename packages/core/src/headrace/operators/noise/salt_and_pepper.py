"""`noise.salt_and_pepper`."""

from __future__ import annotations

import numpy as np

from headrace.errors import ArgumentValueError, LayoutError
from headrace.kernels.cpu import noise as _cpu
from headrace.kernels.cpu.fill import fill_of_type
from headrace.kernels.cpu.random import fill_uniform
from headrace.kernels.gpu import noise as _gpu
from headrace.kernels.gpu import random as _gpu_random
from headrace.operators.support.argument_types import BoolArg, FloatArg
from headrace.operators.support.arguments import numbers_of, scalars
from headrace.operators.support.operator import (
    BatchContext,
    SampleContext,
    SampleOperator,
    operator,
)
from headrace.operators.support.planning import PlanContext, Planned, Samples, plan_batch, repeated
from headrace.operators.support.schema import Arg, Input, Spec
from headrace.tensors.gpu.batch import DeviceBatch, volumes
from headrace.types import DALIDataType, to_numpy_type
from headrace.types.dtypes import INTEGERS

NOISY = Input("data", "Data of any shape and layout.", dtypes=(*INTEGERS, DALIDataType.FLOAT))


@operator(
    "noise.salt_and_pepper",
    inputs=NOISY,
    args=(
        Arg("prob", FloatArg, 0.05, "Share of the pixels that are noise.", per_sample=True),
        Arg("salt_vs_pepper", FloatArg, 0.5, "Share of these that are salt.", per_sample=True),
        Arg(
            "salt_val",
            FloatArg,
            None,
            "Value of salt; the largest of the type if not given, 1 of floats.",
            per_sample=True,
        ),
        Arg(
            "pepper_val",
            FloatArg,
            None,
            "Value of pepper; the smallest of the type if not given, -1 of floats.",
            per_sample=True,
        ),
        Arg(
            "per_channel",
            BoolArg,
            False,
            "Whether each channel of a pixel is drawn for itself. Otherwise channels are the first "
            "or the last axis, as the layout says; without one, the last.",
        ),
    ),
    output_docs=("The noisy data, of the input's type and layout.",),
    random=True,
)
class SaltAndPepper(SampleOperator):
    """Gives some of the pixels one of two values.

    Values are converted to the type of the data as in C: fractions are dropped.

    Examples
    --------
    >>> noisy = fn.noise.salt_and_pepper(images, prob=0.1, salt_vs_pepper=0.3)
    """

    def infer(self, data: Spec) -> Spec:
        self._dtype = np.dtype(to_numpy_type(data.dtype))
        layout = data.layout
        self._first = layout[:1] == "C" and len(layout) > 1
        if not self.args.per_channel and layout and "C" not in (layout[0], layout[-1]):
            raise LayoutError(
                "Channels, C, must be the first or the last dimension of the layout, got "
                f'"{layout}". Give `per_channel=True`, or take the layout off with '
                '`fn.reshape(layout="")`.'
            )
        return data

    def plan(self, c: PlanContext, data: Samples) -> Planned:
        prob, share = (numbers_of(c, n, np.float32) for n in ("prob", "salt_vs_pepper"))
        for name, value in (("prob", prob), ("salt_vs_pepper", share)):
            wrong = value[~((value >= 0) & (value <= 1))]
            if len(wrong):
                raise ArgumentValueError(
                    f"`{name}` should be a value within [0.0, 1.0], got {wrong[0]}."
                )
        shapes = repeated(data.shapes, c.size)
        sizes = volumes(shapes)
        channels = np.ones(c.size, np.int64)
        if not self.args.per_channel and shapes.shape[1]:
            channels = np.maximum(shapes[:, 0 if self._first else -1], 1)
        inner = np.ones_like(channels) if self._first else channels
        salt, pepper = self._value(c, "salt_val", high=True), self._value(c, "pepper_val")
        # A number below the first is salt, one between both pepper.
        return Planned(shapes, (prob * share, prob, salt, pepper, sizes // channels, inner))

    def _value(self, c: PlanContext, name: str, *, high: bool = False) -> np.ndarray:
        """Values of salt or pepper, of the type of the data, ``(samples,)``."""
        given = scalars(c, name, np.float32)
        if given is not None:
            return fill_of_type(given, self._dtype)
        if self._dtype.kind == "f":
            return np.full(c.size, 1.0 if high else -1.0, self._dtype)
        limits = np.iinfo(self._dtype)  # type: ignore[type-var]
        return np.full(c.size, limits.max if high else limits.min, self._dtype)

    def cpu(self, c: SampleContext, data: np.ndarray) -> np.ndarray:
        out = c.out
        np.copyto(out, data)
        below, above, salt, pepper, pixels, inner = c.row
        if out.size:
            units = c.temp((1, pixels), np.float32)
            fill_uniform(units, c.seed, c.iteration, c.index, 0.0, 1.0)
            word = f"u{self._dtype.itemsize}"
            values = np.array([salt, pepper], self._dtype).view(word)
            limits = np.array([below, above], np.float32)
            _cpu.salt_and_pepper(out.reshape(-1).view(word), units[0], limits, values, inner)
        return out

    def gpu(self, c: BatchContext, data: DeviceBatch) -> DeviceBatch:
        below, above, salt, pepper, pixels, inner = plan_batch(self, c, data).table
        units = c.temp(pixels[:, None], np.float32)
        ends = np.zeros(c.size), np.ones(c.size)
        _gpu_random.fill_uniform(c.queue, units, c.seed, c.iteration, c.indices, *ends)
        out = c.empty(data.extents, data.dtype)
        _gpu.salt_and_pepper(c.queue, data, units, (below, above), (salt, pepper), inner, out)
        return out
