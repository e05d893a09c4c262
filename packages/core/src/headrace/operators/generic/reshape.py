"""`reshape` and `reinterpret`: the same elements, or the same bytes, in another shape."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.errors import (
    ArgumentValueError,
    DataTypeError,
    LayoutError,
    OutOfRangeError,
    ShapeError,
)
from headrace.operators.support.argument_types import (
    DataTypeArg,
    FloatListArg,
    IntListArg,
    LayoutArg,
)
from headrace.operators.support.arguments import given, rows_of
from headrace.operators.support.axes_operator import along_axes
from headrace.operators.support.operator import (
    BatchContext,
    SampleContext,
    SampleOperator,
    operator,
)
from headrace.operators.support.planning import PlanContext, Planned, Samples, plan_batch
from headrace.operators.support.rules import at_least_one, at_most_one
from headrace.operators.support.schema import Arg, Input, Spec
from headrace.tensors.gpu.batch import StridedBatch, volumes
from headrace.types import DALIDataType, storage_dtype, to_numpy_type

if TYPE_CHECKING:
    from headrace.tensors.gpu.batch import DeviceBatch

_INTEGERS = frozenset(t for t in DALIDataType if DALIDataType.UINT8 <= t <= DALIDataType.INT64)

_LARGEST = 2.0**62

_SHAPES = ("shape_input", "shape", "rel_shape")
_NOTHING = "There is nothing to do."

_INPUTS = (
    Input("data", "Data of any rank and layout."),
    Input(
        "shape_input",
        "The shape of each sample: integers, one-dimensional. Excludes `shape` and `rel_shape`.",
        device="cpu",
        optional=True,
    ),
)

_ARGS = (
    Arg(
        "shape",
        IntListArg,
        None,
        "Extents of the output. One of them may be negative: it becomes what the number of "
        "elements asks for. Excludes `rel_shape`.",
        per_sample=True,
    ),
    Arg(
        "rel_shape",
        FloatListArg,
        None,
        "Extents of the output as multiples of the extents of the input, rounded to the nearest "
        "integer. One may be negative, as in `shape`. There may be fewer than the input has "
        "axes, and one more if it is negative and the last. Excludes `shape`.",
        per_sample=True,
    ),
    Arg(
        "src_dims",
        IntListArg,
        None,
        "Axes of the input that the axes of the output take their extents from, -1 for a new axis "
        "of extent 1. With `rel_shape`, its factors belong to the axes of the output.",
        per_sample=True,
    ),
    Arg(
        "layout",
        LayoutArg,
        None,
        "Layout of the output; an empty one clears it. Where not given, the layout stays if the "
        "number of axes does; a shape that is told sample by sample must then have as many axes.",
    ),
)


class Reshaping(SampleOperator):
    """Shared code of `reshape` and `reinterpret`."""

    _dtype: DALIDataType

    def check_constants(self) -> None:
        args = self.args
        if args.rel_shape == ():
            raise ArgumentValueError("`rel_shape` is empty; give a factor for each axis.")
        for name in ("shape", "rel_shape"):
            values = getattr(args, name)
            if values is not None:
                if 0 in values:
                    raise ArgumentValueError(
                        f"`{name}` must not have extents of 0, got {list(values)}."
                    )
                _check_wildcards(np.array([values]), name)

    def infer(self, data: Spec, shape_input: Spec | None = None) -> Spec:
        self._dtype = self._output_type(data)
        self.source_size = storage_dtype(data.dtype).itemsize
        self.target = storage_dtype(self._dtype)
        self.by_input = self.plans_values = shape_input is not None
        self.relative = self.given("rel_shape")
        self.absolute = self.given("shape")
        self.mapped = self.given("src_dims") and not (self.by_input or self.absolute)
        if shape_input is not None and shape_input.dtype not in _INTEGERS:
            raise DataTypeError(
                f"The shape input must hold integers, got {shape_input.dtype.name}; `cast` it "
                "first."
            )
        self._check_axes(data.ndim)
        ndim = self._output_rank(data.ndim)
        layout = self.args.layout
        if layout is None and ndim is None and data.layout:
            # What comes after has to know the layout: it stays, and the samples must fit it.
            layout = data.layout
        if layout is None:
            layout = data.layout if ndim == data.ndim else ""
        elif layout and ndim is None:
            ndim = len(layout)
        elif layout and len(layout) != ndim:
            raise LayoutError(f'The layout "{layout}" does not fit a {ndim}-dimensional shape.')
        self.rank = ndim
        return Spec(self._dtype, ndim, layout)

    def _output_type(self, data: Spec) -> DALIDataType:
        return data.dtype

    def _output_rank(self, ndim: int | None) -> int | None:
        args = self.args
        if self.by_input:
            return None
        if self.absolute:
            return None if args.shape is None else len(args.shape)
        if self.mapped and args.src_dims is not None:
            return len(args.src_dims)
        if self.relative:
            return None if args.rel_shape is None else len(args.rel_shape)
        return None if self.mapped else ndim

    def _check_axes(self, ndim: int | None) -> None:
        args = self.args
        if ndim is None:
            return
        if args.src_dims is not None:  # which counts for nothing beside `shape`
            _check_source_axes(np.array([args.src_dims], np.int64), ndim)
        if self.relative and args.rel_shape is not None and not self.mapped:
            _check_factor_count(np.array([args.rel_shape]), ndim)

    def plan(
        self, c: PlanContext, data: Samples, shape_input: Samples | None = None
    ) -> Planned | None:
        if shape_input is not None and not shape_input.are_there:
            return None
        extents = data.shapes
        shapes = self._wanted(c, extents, shape_input)
        if self.rank is not None and shapes.shape[1] != self.rank:
            raise ShapeError(
                f"The shape {tuple(shapes[0].tolist())} has {shapes.shape[1]} axes, but the layout "
                f"has {self.rank}. Give the new `layout`, or an empty one to have none."
            )
        return Planned(self._complete(extents, shapes))

    def _complete(self, extents: np.ndarray, shapes: np.ndarray) -> np.ndarray:
        """`shapes` with what negative extents stand for; they hold the bytes that there are."""
        own_bytes, target_bytes = volumes(extents) * self.source_size, self.target.itemsize
        told = shapes < 0
        known = np.where(told, 1, shapes)
        for k in np.flatnonzero(told.any(axis=1) & (known == 0).any(axis=1))[:1].tolist():
            axis, wanted = int(told[k].argmax()), shapes[k].tolist()
            raise ShapeError(
                f"Cannot infer the extent of dimension {axis} when the volume of the others, "
                f"{wanted[:axis] + wanted[axis + 1 :]}, is 0. Input shape: "
                f"{' x '.join(map(str, extents[k].tolist()))}"
            )
        rest = own_bytes // target_bytes // np.maximum(volumes(known), 1)
        found = np.where(told, rest[:, np.newaxis], shapes)
        wrong = volumes(found) * target_bytes != own_bytes
        wrong |= found.prod(axis=1, dtype=np.float64) > _LARGEST  # int64 would have wrapped around
        for k in np.flatnonzero(wrong)[:1].tolist():
            shape, source = tuple(found[k].tolist()), tuple(extents[k].tolist())
            raise ShapeError(
                "The volume of the new shape should match the one of the original shape. Requested "
                f"a shape with {math.prod(shape)} elements but the original shape has "
                f"{math.prod(source)} elements. Data of shape {source}, of {self.source_size} "
                f"bytes an element, does not fill the shape {shape}, of {target_bytes} bytes an "
                "element."
            )
        return found

    def _wanted(
        self, c: PlanContext, extents: np.ndarray, shape_input: Samples | None
    ) -> np.ndarray:
        """The wanted shapes; a negative extent stands for one that follows from the others."""
        size = len(extents)

        if shape_input is not None:
            rows = [row.reshape(-1) for row in shape_input.rows]
            if any(len(row) != len(rows[0]) for row in rows):
                raise ShapeError("The shapes of samples have different numbers of extents.")
            wanted = np.array(rows).astype(np.int64)
            _check_wildcards(wanted, "shape_input")
            return wanted
        if self.absolute:
            wanted = rows_of(c, "shape", np.int64)[:size]
            _check_wildcards(wanted, "shape")
            return wanted
        if self.mapped:
            axes = rows_of(c, "src_dims", np.int64)[:size]
            _check_source_axes(axes, extents.shape[1])
            extents = along_axes(extents, axes, 1)
        if self.relative:
            factors = rows_of(c, "rel_shape", np.float64)[:size]
            if not self.mapped:
                _check_factor_count(factors, extents.shape[1])
            elif factors.shape[1] != extents.shape[1]:
                raise ArgumentValueError(
                    "`src_dims` and `rel_shape` have different lengths: "
                    f"{extents.shape[1]} vs {factors.shape[1]}. Give a factor for each axis taken."
                )
            _check_wildcards(factors, "rel_shape")
            return _scaled(extents, factors)
        if self.target.itemsize != self.source_size:
            return self._refitted(extents)
        return extents

    def _refitted(self, extents: np.ndarray) -> np.ndarray:
        """Shapes with their last extent adapted to elements of another size."""
        if not extents.shape[1]:
            raise ShapeError(
                "A scalar has no axis that could be adapted to elements of another size; give a "
                "`shape`."
            )
        row_bytes = extents[:, -1:] * self.source_size
        size = self.target.itemsize
        for found in row_bytes[row_bytes % size != 0][:1].tolist():
            raise ShapeError(
                f"The last axis has {found} bytes, which is no multiple of the {size} bytes of "
                f"{self._dtype.name}."
            )
        return np.concatenate([extents[:, :-1], row_bytes // size], axis=1)

    def cpu(
        self, c: SampleContext, data: np.ndarray, shape_input: np.ndarray | None = None
    ) -> np.ndarray:
        if data.dtype == self.target:
            return data.reshape(c.shape)
        return np.ascontiguousarray(data).reshape(-1).view(self.target).reshape(c.shape)

    def gpu(self, c: BatchContext, data: DeviceBatch, shape_input: Any = None) -> DeviceBatch:
        (shapes,) = plan_batch(self, c, data, *given(shape_input)).shapes
        if (data.pointers % np.uint64(self.target.itemsize)).any():
            # Elements of the new size would not be aligned.
            aligned = c.empty(data.shapes, data.dtype)
            c.queue.copy_strided(StridedBatch.of(data), aligned)
            data = aligned
        return data.reshaped(shapes, self.target)


def _scaled(extents: np.ndarray, factors: np.ndarray) -> np.ndarray:
    """Extents times factors, of which there may be fewer, or one more; -1 for negative ones."""
    count = factors.shape[1]
    sources = along_axes(extents, np.minimum(np.arange(count), extents.shape[1])[np.newaxis], 1)
    with np.errstate(invalid="ignore", over="ignore"):
        # DALI multiplies in float32 and rounds halves up.
        products = sources * factors.astype(np.float32).astype(np.float64)
        whole = np.floor(products.astype(np.float32).astype(np.float64) + 0.5)
        told = factors < 0
        for k, axis in np.argwhere(~(told | (products < _LARGEST)))[:1].tolist():
            raise ArgumentValueError(
                f"`rel_shape` has {factors[k, axis]:g}, which makes no extent of an axis of extent "
                f"{sources[k, axis]}."
            )
        return np.where(told, -1, whole).astype(np.int64)


def _check_wildcards(values: np.ndarray, name: str) -> None:
    for wrong in values[(values < 0).sum(axis=1) > 1][:1].tolist():
        raise ArgumentValueError(
            f"`{name}` may have one negative extent, which is computed, got {wrong}."
        )


def _check_source_axes(axes: np.ndarray, ndim: int) -> None:
    for k, position in np.argwhere((axes < -1) | (axes >= ndim))[:1].tolist():
        raise OutOfRangeError(
            f"`src_dims[{position}]` is {axes[k, position]}, which is out of bounds. It must be an "
            f"axis of the input, 0 to {ndim - 1}, or -1 for a new axis."
        )


def _check_factor_count(factors: np.ndarray, ndim: int) -> None:
    count = factors.shape[1]
    if count > ndim and (count > ndim + 1 or not (factors[:, -1] < 0).all()):
        raise ArgumentValueError(
            f"`rel_shape` has more elements ({count}) than there are dimensions in the input "
            f"({ndim}). To make new ones, use `src_dims`."
        )


@operator(
    "reshape",
    inputs=_INPUTS,
    args=_ARGS,
    rules=(
        at_most_one(*_SHAPES),
        at_least_one(*_SHAPES, "src_dims", "layout", said=_NOTHING),
    ),
    output_docs=("The same elements in the same order, in another shape.",),
)
class Reshape(Reshaping):
    """Gives data another shape or layout, without touching its elements.

    Examples
    --------
    >>> rows = fn.reshape(images, shape=[-1, 3])
    >>> halves = fn.reshape(images, rel_shape=[0.5, -1])
    >>> flat = fn.reshape(masks, src_dims=[0, 1])
    >>> named = fn.reshape(arrays, layout="HWC")
    """


@operator(
    "reinterpret",
    inputs=_INPUTS,
    args=(
        *_ARGS,
        Arg(
            "dtype",
            DataTypeArg,
            None,
            "Element type of the output. Where no shape is given, the last extent is adapted to "
            "the size of the new elements.",
        ),
    ),
    rules=(
        at_most_one(*_SHAPES),
        at_least_one(*_SHAPES, "src_dims", "layout", "dtype", said=_NOTHING),
    ),
    output_docs=("The same bytes, seen as another type or in another shape.",),
)
class Reinterpret(Reshaping):
    """Takes the bytes of data for elements of another type, shape or layout.

    Examples
    --------
    >>> floats = fn.reinterpret(raw_bytes, dtype=types.FLOAT)
    """

    def _output_type(self, data: Spec) -> DALIDataType:
        wanted: DALIDataType | None = self.args.dtype
        if wanted is None:
            return data.dtype
        try:
            to_numpy_type(wanted)
        except KeyError:
            raise DataTypeError(
                f"`dtype` must be a type of numbers or BOOL, got {wanted.name}."
            ) from None
        return wanted
