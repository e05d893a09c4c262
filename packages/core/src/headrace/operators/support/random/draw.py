"""Shared code of operators that draw random tensors: shape, type and random numbers used."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any

import numpy as np

from headrace.errors import ArgumentValueError, DataTypeError
from headrace.kernels.cpu.philox_state import DrawSeed
from headrace.operators.support.argument_types import DataTypeArg, IntListArg
from headrace.operators.support.operator import SampleContext, SampleOperator
from headrace.operators.support.planning import PlanContext, Planned, Samples
from headrace.operators.support.schema import Arg, Input, Spec
from headrace.types import DALIDataType, to_numpy_type
from headrace.types.dtypes import FLOATS, INTEGERS

SHAPE_LIKE = Input(
    "shape_like",
    "Data whose samples give the shapes of the output's samples.",
    device="any",
    optional=True,
)
SHAPE = Arg(
    "shape",
    IntListArg,
    None,
    "Shape of the output. Neither this nor `shape_like` given: one number, without axes.",
    per_sample=True,
)
DTYPE_ARG = Arg(
    "dtype",
    DataTypeArg,
    None,
    "Element type of the output. Numbers are rounded (halves away from zero) and kept inside "
    "the range of an integer type.",
)

_LARGE = 1024
_LITTLE_MORE = np.nextafter(1.0, 2.0)
DRAWABLE = (*INTEGERS, *FLOATS)


class ShapedDraw(SampleOperator):
    """Base of the operators whose output has the shape of `shape`, of an input, or no axes."""

    shape: tuple[int, ...] | None
    """Shape of every sample's output, where it is the same for all."""

    def find_shape(self, like: Spec | None) -> int | None:
        """Find out where shapes come from; return the number of axes, where it is known."""
        self.shape = None
        if like is not None:
            if self.given("shape"):
                raise ArgumentValueError(
                    "`shape` and the input `shape_like` both say what shape the output has; "
                    "give one of them."
                )
            return like.ndim
        if "shape" in self.tensor_args:
            return 1 if self.tensor_args["shape"].ndim == 0 else None
        shape = self.args.shape
        self.shape = () if shape is None else checked_shape(shape)
        return len(self.shape)

    def sample_shape(self, c: SampleContext, like: np.ndarray | None) -> tuple[int, ...]:
        """Shape of this sample's output; `like` is the input `shape_like`, if there is one."""
        if self.shape is not None:
            return self.shape
        return checked_shape(c.args.shape) if like is None else like.shape


class Draw(ShapedDraw):
    """Base of the operators that fill a tensor with independent random numbers.

    Subclasses say how to fill memory (`fill`); shape, type and seeds are dealt with here. A
    number depends on the operator's seed, the iteration, the sample's position in the batch and
    the element's position in the sample, and on nothing else.
    """

    single: bool
    """True if a call of dynamic mode draws numbers with the precision of float32."""
    default_dtype = DALIDataType.FLOAT
    dtypes: tuple[DALIDataType, ...] = DRAWABLE
    work_dtype: np.dtype
    """Type of the memory that `fill` is handed; `prepare` may say it."""
    looks_up: bool = False
    """True if indices are drawn, which `convert` looks values up by."""

    def infer(self, shape_like: Spec | None = None) -> Spec:
        dtype = self.default_dtype if self.args.dtype is None else self.args.dtype
        if dtype not in self.dtypes:
            allowed = ", ".join(t.name for t in self.dtypes)
            raise DataTypeError(
                f"Data type {dtype.name} is not supported. `dtype` can be: {allowed}."
            )
        self.dtype = np.dtype(to_numpy_type(dtype))
        self.single = self.dtype == np.float32 or self.dtype.itemsize <= 2
        ndim = self.find_shape(shape_like)
        self.fixed = self.shape is not None and not self.tensor_args
        self.prepare()
        self._is_direct = self.work_dtype == self.dtype and not self.looks_up
        self.needs_plan = self.fixed and math.prod(self.shape or ()) <= _LARGE
        return Spec(dtype, ndim)

    def prepare(self) -> None:
        """Check constant arguments, once."""

    @abstractmethod
    def fill(self, out: np.ndarray, args: Any, seed: DrawSeed, iteration: int, first: int) -> None:
        """Fill `out` (samples, elements), of `work_dtype`; row 0 is sample number `first`."""

    def convert(self, drawn: np.ndarray, out: np.ndarray, args: Any) -> None:
        """Write `drawn` into `out`, which has the same shape and the output's type."""
        store_drawn(drawn, out)

    def cpu(self, c: SampleContext, shape_like: np.ndarray | None = None) -> np.ndarray:
        shape = self.sample_shape(c, shape_like)
        out = c.empty(shape, self.dtype)
        if self._is_direct:
            self.fill(out.reshape(1, -1), c.args, c.seed, c.iteration, c.index)
        else:
            drawn = c.temp((1, out.size), self.work_dtype)
            self.fill(drawn, c.args, c.seed, c.iteration, c.index)
            self.convert(drawn.reshape(shape), out, c.args)
        return out

    plans_values = True

    def plan(self, c: PlanContext, shape_like: Samples | None = None) -> Planned | None:
        """The samples, which are those that `cpu` draws, or `None` where arguments or shapes differ
        by sample, or samples are large, and better shared out among threads.
        """
        if not self.needs_plan:
            return None
        assert self.shape is not None
        out = np.empty((c.size, *self.shape), self.dtype)
        if out.size == 0:
            return Planned(values=out)
        first = c.indices[0]
        if c.indices[-1] - first != c.size - 1:
            return None
        rows = out.reshape(c.size, -1)
        if self._is_direct:
            self.fill(rows, self.args, c.seed, c.iteration, first)
        else:
            drawn = np.empty(rows.shape, self.work_dtype)
            self.fill(drawn, self.args, c.seed, c.iteration, first)
            self.convert(drawn, rows, self.args)
        return Planned(values=out)


def real_work_dtype(dtype: np.dtype) -> np.dtype:
    """In what type real numbers are drawn that will be stored as `dtype`."""
    return np.dtype(np.float32) if dtype in (np.float16, np.float32) else np.dtype(np.float64)


def store_rounded(values: np.ndarray, out: np.ndarray) -> None:
    """Store real `values` in `out`: integers rounded half away from zero and saturated.

    Not a number becomes zero.
    """
    if out.dtype.kind not in "iu":
        with np.errstate(over="ignore"):
            out[...] = values
        return
    limits = np.iinfo(out.dtype)
    rounded = np.asarray(np.trunc(values + np.copysign(0.5, values)))  # without axes: a number
    rounded[np.isnan(rounded)] = 0.0
    # The largest 64-bit integers are not float64 values: those at or above the limit go apart.
    above = rounded >= float(limits.max)
    rounded[above] = 0.0
    np.maximum(rounded, float(limits.min), out=rounded)
    out[...] = rounded.astype(out.dtype)
    out[above] = limits.max


def store_drawn(drawn: np.ndarray, out: np.ndarray) -> None:
    """`store_rounded` for drawn numbers, which are overwritten."""
    if out.dtype.kind not in "iu" or out.dtype.itemsize == 8 or not np.isfinite(drawn).all():
        store_rounded(drawn, out)
        return
    limits = np.iinfo(out.dtype)
    np.clip(drawn, limits.min, limits.max, out=drawn)
    drawn *= _LITTLE_MORE  # halves are rounded away from zero
    np.rint(drawn, out=drawn)
    np.copyto(out, drawn, casting="unsafe")


def checked_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return `shape` if it can be one."""
    if any(extent < 0 for extent in shape):
        raise ArgumentValueError(f"`shape`={tuple(shape)} has a negative extent.")
    return tuple(shape)
