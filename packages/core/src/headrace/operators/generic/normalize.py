"""`normalize`."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace._lazy_module import lazy_module
from headrace.errors import ArgumentValueError, ShapeError
from headrace.kernels.cpu.normalize import (
    needs_double,
    normalize,
    normalize_by_own_moments,
    squared_deviations,
    totals,
)
from headrace.kernels.gpu import normalize_blocks as _normalize_blocks
from headrace.kernels.gpu import normalize_short as _normalize_short
from headrace.layout import axes_of
from headrace.operators.support.argument_types import (
    ArrayArg,
    BoolArg,
    DataTypeArg,
    FloatArg,
    IntArg,
    IntListArg,
    LayoutArg,
)
from headrace.operators.support.compiled_steps import CompiledStepContext, SampleColumns
from headrace.operators.support.normalize.suspect import suspect_moments
from headrace.operators.support.operator import (
    BatchContext,
    BatchOperator,
    ChunkContext,
    Operator,
    SampleContext,
    SampleOperator,
    operator,
)
from headrace.operators.support.planning import PlanContext, Planned, Samples
from headrace.operators.support.rules import AXES_OR_NAMES
from headrace.operators.support.schema import Arg, Input, Spec, data_types
from headrace.operators.support.shape_memo import ShapeMemo
from headrace.tensors.rows import Rows
from headrace.types import DALIDataType, to_numpy_type

if TYPE_CHECKING:
    from headrace.kernels.gpu.normalize_blocks import Blocks
    from headrace.operators.support.normalize import batch as _normalize_batch
    from headrace.tensors.gpu.batch import DeviceBatch
else:
    _normalize_batch = lazy_module("headrace.operators.support.normalize.batch")
_TYPES = data_types("UINT8 INT8 UINT16 INT16 UINT32 INT32 FLOAT")
_PARAMETERS = ("mean", "stddev")


@operator(
    "normalize",
    inputs=Input("data", "Data of any rank and layout.", dtypes=_TYPES),
    args=(
        Arg(
            "axes",
            IntListArg,
            None,
            "Axes that are normalised together: moments are taken along them. All when neither "
            "these nor `axis_names` are given; then, with a `mean` or `stddev` of more than one "
            "element, the axes in which that has an extent of 1.",
        ),
        Arg("axis_names", LayoutArg, None, "The same by letters of the layout, such as ``HW``."),
        Arg(
            "batch",
            BoolArg,
            False,
            "Whether moments are those of the whole batch instead of each sample's own. Extents "
            "of axes that are not reduced must be the same in all samples.",
        ),
        Arg(
            "ddof",
            IntArg,
            0,
            "What is taken off the number of elements when a variance is estimated: 1 for an "
            "unbiased estimate. With no more elements than that the variance is 0.",
        ),
        Arg(
            "dtype",
            DataTypeArg,
            DALIDataType.FLOAT,
            "Element type of the output. Integers are rounded and saturate; make use of their "
            "range with `scale` and `shift`.",
            choices=_TYPES,
            late=True,
        ),
        Arg("epsilon", FloatArg, 0.0, "Number added to variances, given ones as well."),
        Arg(
            "mean",
            ArrayArg,
            None,
            "What is subtracted, a number or an array of the input's rank with an extent of 1 in "
            "reduced axes. When not given, the mean along these axes.",
            per_sample=True,
            shape_of="() or the input's with 1 in reduced axes",
        ),
        Arg("scale", FloatArg, 1.0, "Factor of the quotient."),
        Arg("shift", FloatArg, 0.0, "Number added in the end."),
        Arg(
            "stddev",
            ArrayArg,
            None,
            "What is divided by, a number or an array of the input's rank with an extent of 1 in "
            "reduced axes. When not given, the root of the mean square distance to the mean.",
            per_sample=True,
            shape_of="() or the input's with 1 in reduced axes",
        ),
    ),
    rules=(AXES_OR_NAMES,),
    output_docs=("The normalised data, in the layout of the input.",),
)
class Normalize(SampleOperator):
    """Shifts and scales data to a mean of 0 and a standard deviation of 1.

    The output is ``scale * (data - mean) / stddev + shift``. A deviation of 0 makes it ``shift``,
    unless it was given as a number. The extents of `mean` and `stddev` are broadcast.

    Examples
    --------
    Each sample by its own moments, channel by channel:

    >>> normal = fn.normalize(images, axis_names="HW")

    By given ones, to 8-bit numbers around 128:

    >>> levels = fn.normalize(
    ...     features, mean=0.2, stddev=3.0, scale=64, shift=128, dtype=types.UINT8
    ... )
    """

    @classmethod
    def for_arguments(cls, args: dict[str, Any]) -> type[Operator]:
        """Moments of the whole batch need all samples."""
        whole = args["batch"] and (args.get("mean") is None or args.get("stddev") is None)
        return BatchNormalize if whole else cls

    chunked = True
    needs_plan = False

    def plan(self, c: PlanContext, *inputs: Samples) -> Planned:
        return Planned(inputs[0].shapes)

    unplanned = _PARAMETERS

    def infer(self, *inputs: Spec) -> Spec:
        data = inputs[0]
        args = self.args
        self._dtype = np.dtype(to_numpy_type(args.dtype))
        arrays = [name for name in _PARAMETERS if self._is_array(name)]
        if args.batch and arrays:
            raise ArgumentValueError(
                f"`batch` takes moments of the whole batch, but `{arrays[0]}` has a value of its "
                "own for each sample or channel. Give a single number, or leave it out."
            )
        self._fixed_factor = None if args.stddev is None else self._factor(args.stddev)
        self._axes = self._given_axes(data)
        # The long way is for differences of float64, and for what is rounded.
        self._in_one_go = self._dtype == np.float32 and not (
            any(map(self.given, _PARAMETERS)) or needs_double(np.dtype(to_numpy_type(data.dtype)))
        )
        self._groups: ShapeMemo[list[tuple[Blocks, np.ndarray | None]]] = ShapeMemo()
        if self._axes is not None and not arrays and all(map(self.given, _PARAMETERS)):
            raise ArgumentValueError(
                "`axes` or `axis_names` is given, but `mean` and `stddev` are numbers, so that "
                "nothing is left to be taken along axes. Leave the axes out."
            )
        return data._replace(dtype=args.dtype)

    def suspect(self, *inputs: Spec) -> str:
        std = None if self.args.epsilon else self.args.stddev
        return suspect_moments(self.args.mean, std, inputs[0].dtype, "stddev")

    def _is_array(self, name: str) -> bool:
        value = getattr(self.args, name)
        return name in self.tensor_args or (value is not None and value.size != 1)

    def _given_axes(self, data: Spec) -> tuple[int, ...] | None:
        axes, names = self.args.axes, self.args.axis_names
        if names is not None:
            return tuple(sorted(set(axes_of(data.layout, names))))
        if axes is None:
            return None
        if not axes:
            raise ArgumentValueError("`axes` is empty; give at least one axis, or leave it out.")
        ndim = data.ndim
        for axis in axes:
            if axis < 0 or (ndim is not None and axis >= ndim):
                limit = "" if ndim is None else f" to {ndim - 1}"
                raise ArgumentValueError(f"`axes` has {axis}; allowed are 0{limit}.")
        return tuple(sorted(set(axes)))

    def cpu_chunk(self, c: ChunkContext, *inputs: Rows) -> Rows:
        args, samples = self.args, inputs[0]
        out = c.empty(samples.shapes, self._dtype)
        means, deviations = c.values("mean"), c.values("stddev")
        left: Sequence[int] = range(len(samples))
        if self._in_one_go:
            left = normalize_by_own_moments(
                samples,
                out,
                self._axes,
                ddof=args.ddof,
                epsilon=args.epsilon,
                scale=args.scale,
                shift=args.shift,
            )
        for k in left:
            self._normalize(samples[k], out[k], means[k], deviations[k])
        return out

    def compiled(self, c: CompiledStepContext, *inputs: SampleColumns) -> SampleColumns | None:
        (data,) = inputs
        axes = range(data.ndim) if self._axes is None else self._axes
        first, behind = (axes[0], axes[-1] + 1) if axes else (0, 0)
        if not self._in_one_go or data.dtype != np.float32 or behind - first != len(axes):
            return None
        from headrace.kernels.cpu import normalize_steps as steps
        from headrace.kernels.cpu import step_loops

        args, out = self.args, c.out()
        moments = args.ddof, float(args.epsilon), float(args.scale), float(args.shift)
        words = *data.words, *out.words, first, behind, *moments
        c.steps.add(step_loops.plan_alike, steps.carry, words)
        return out

    def _normalize(
        self, data: np.ndarray, out: np.ndarray, mean: np.ndarray | None, stddev: np.ndarray | None
    ) -> None:
        """Fill `out` with one sample, step by step."""
        if mean is not None and stddev is not None:
            self._check_shapes(data.shape, mean.shape, stddev.shape)
            factor = self._fixed_factor if self._fixed_factor is not None else self._factor(stddev)
            normalize(data, out, mean, factor, self.args.shift)
            return
        given = mean if mean is not None else stddev
        axes = self._reduced_axes(data.shape, None if given is None else given.shape)
        count = math.prod(data.shape[k] for k in axes)
        if mean is None:
            mean = _mean(totals(data, axes), count, data.dtype)
        if stddev is None:
            squares = squared_deviations(data, _as_center(mean, data.ndim), axes)
            factor = self._estimated_factor(squares, count)
        else:
            factor = self._factor(stddev)
        normalize(data, out, mean, factor, self.args.shift)

    def gpu(self, c: BatchContext, *inputs: Any) -> DeviceBatch:
        data: DeviceBatch = inputs[0]
        args = self.args
        out = c.empty(data.extents, self._dtype)
        if not (
            args.batch or any(map(self.given, _PARAMETERS))
        ) and _normalize_short.normalize_short_rows(
            c.queue,
            data,
            out,
            self._axes if self._axes is not None else tuple(range(data.ndim)),
            ddof=args.ddof,
            epsilon=args.epsilon,
            scale=args.scale,
            shift=args.shift,
        ):
            return out
        mean, factor = (
            _normalize_batch.given_values(c, "mean"),
            _normalize_batch.given_values(c, "stddev"),
        )
        if factor is not None:
            fixed = self._fixed_factor
            values = self._factor(factor.values) if fixed is None else fixed.reshape(-1)
            factor = factor._replace(values=values)
        batch = isinstance(self, BatchNormalize)

        def grouped() -> list[tuple[Blocks, np.ndarray | None]]:
            axes: dict[tuple[int, ...], np.ndarray | None]
            shapes = data.shapes
            if batch:
                axes = {self._batch_axes(list(map(tuple, shapes.tolist()))): None}
            else:
                axes = _normalize_batch.samples_by_axes(
                    c, self._parameter_axes, self._axes, shapes, mean, factor
                )
            return [
                (
                    _normalize_blocks.along(shapes if members is None else shapes[members], own),
                    members,
                )
                for own, members in axes.items()
            ]

        groups = grouped() if self.tensor_args else self._groups.of(data, grouped)
        estimate = _normalize_batch.Estimate(args.ddof, args.epsilon, args.scale, batch)
        for blocks, members in groups:
            _normalize_batch.normalize_samples(
                c.queue, data, out, blocks, members, mean, factor, estimate, args.shift
            )
        return out

    def _parameter_axes(
        self, shape: tuple[int, ...], mean: tuple[int, ...] | None, stddev: tuple[int, ...] | None
    ) -> tuple[int, ...]:
        """Axes along which mean and deviation, of these shapes where given, are the same."""
        if mean is None or stddev is None:
            return self._reduced_axes(shape, mean if mean is not None else stddev)
        self._check_shapes(shape, mean, stddev)
        arrays = [own for own in (mean, stddev) if math.prod(own) != 1]
        return tuple(k for k in range(len(shape)) if all(own[k] == 1 for own in arrays))

    def _reduced_axes(
        self, shape: tuple[int, ...], parameter: tuple[int, ...] | None
    ) -> tuple[int, ...]:
        """Axes that a missing moment is taken along; `parameter` is the shape of the other."""
        if parameter is None or math.prod(parameter) == 1:
            return self._axes if self._axes is not None else tuple(range(len(shape)))
        self._check_shapes(shape, parameter)
        if self._axes is not None:
            return self._axes
        return tuple(k for k in range(len(shape)) if parameter[k] == 1)

    def _batch_axes(self, shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
        """Axes that moments of the whole batch are taken along."""
        axes = self._axes if self._axes is not None else tuple(range(len(shapes[0])))
        _check_batch(shapes, axes)
        return axes

    def _check_shapes(self, shape: tuple[int, ...], *parameters: tuple[int, ...]) -> None:
        for parameter in parameters:
            if math.prod(parameter) == 1:
                continue
            axes = self._axes
            allowed = [
                (1, extent) if axes is None else (1,) if k in axes else (extent,)
                for k, extent in enumerate(shape)
            ]
            fits = len(parameter) == len(shape) and all(
                extent in choice for extent, choice in zip(parameter, allowed, strict=True)
            )
            if not fits:
                raise ShapeError(
                    f"`mean` or `stddev` has the shape {parameter}; expected that of the "
                    f"data, {shape}, with 1 in {_named(axes)}, or a single number."
                )

    def _factor(self, stddev: np.ndarray) -> np.ndarray:
        """Factor that differences are multiplied by, float32, for given deviations."""
        args = self.args
        deviation = stddev.astype(np.float64)
        if args.epsilon:
            deviation *= deviation
            deviation += args.epsilon
            _take_root(deviation)
        # A single number is divided by as it is, even if it is 0.
        is_number = args.stddev is not None and args.stddev.size == 1
        return _quotient(args.scale, deviation, zero_of_zero=not is_number)

    def _estimated_factor(self, squares: np.ndarray, count: int) -> np.ndarray:
        """Factor that differences are multiplied by, from sums of squares, which are
        overwritten.
        """
        args = self.args
        if count > args.ddof:
            squares /= count - args.ddof
        else:
            squares[...] = 0
        squares += args.epsilon
        _take_root(squares)
        return _quotient(args.scale, squares, zero_of_zero=True)


class BatchNormalize(BatchOperator, Normalize):
    """Normalises samples by moments of their whole batch."""

    reduced = 2

    def reduce(self, c: Any, samples: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """The mean of the batch, and what differences to it are multiplied by."""
        axes = self._batch_axes([data.shape for data in samples])
        count = sum(math.prod(data.shape[k] for k in axes) for data in samples)
        args = self.args
        mean, stddev = args.mean, args.stddev
        if mean is None:
            mean = _mean(_sum(totals(data, axes) for data in samples), count, samples[0].dtype)
        if stddev is None:
            center = _as_center(mean, samples[0].ndim)
            squares = _sum(squared_deviations(data, center, axes) for data in samples)
            return mean, self._estimated_factor(squares, count)
        return mean, self._factor(stddev)

    def apply(
        self, c: SampleContext, data: np.ndarray, mean: np.ndarray, factor: np.ndarray
    ) -> np.ndarray:
        """Normalise one sample by the moments of its batch."""
        out = c.empty(data.shape, self._dtype)
        normalize(data, out, mean, factor, self.args.shift)
        return out


def _take_root(values: np.ndarray) -> None:
    with np.errstate(invalid="ignore"):
        np.sqrt(values, out=values)


def _quotient(scale: float, deviation: np.ndarray, *, zero_of_zero: bool) -> np.ndarray:
    zeros = deviation == 0 if zero_of_zero else None
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        np.divide(scale, deviation, out=deviation)
        factor = deviation.astype(np.float32)
    if zeros is not None and zeros.any():
        factor[zeros] = 0
    return factor


def _sum(arrays: Iterable[np.ndarray]) -> np.ndarray:
    with np.errstate(invalid="ignore"):
        # Sums of arrays without axes would be plain numbers, which cannot be worked on in place.
        return np.asarray(functools.reduce(np.add, arrays))


def _mean(total: np.ndarray, count: int, dtype: np.dtype) -> np.ndarray:
    """Mean of a sum that is overwritten: float32 as in DALI, where that can tell numbers apart."""
    total /= max(count, 1)
    return total if needs_double(dtype) else total.astype(np.float32)


def _named(axes: tuple[int, ...] | None) -> str:
    return "any axes" if axes is None else f"the axes {axes}"


def _as_center(mean: np.ndarray, ndim: int) -> np.ndarray:
    return mean.reshape((1,) * ndim) if mean.size == 1 else mean


def _check_batch(shapes: Sequence[tuple[int, ...]], axes: Sequence[int]) -> None:
    first = shapes[0]
    for index, shape in enumerate(shapes):
        same = len(shape) == len(first) and all(
            shape[k] == first[k] for k in range(len(first)) if k not in axes
        )
        if not same:
            raise ShapeError(
                f"`batch` needs samples whose extents agree in all axes but {tuple(axes)}: sample "
                f"{index} has the shape {shape}, sample 0 has {first}."
            )
