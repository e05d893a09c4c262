"""`reshape` and `reinterpret`: the same elements, or the same bytes, in another shape."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.errors import (
    ArgumentValueError,
    DataTypeError,
    LayoutError,
    OutOfRangeError,
    ShapeError,
    UsageError,
)
from penstock.operators.support.argument_types import (
    DataTypeArg,
    FloatListArg,
    IntListArg,
    LayoutArg,
)
from penstock.operators.support.arguments import given
from penstock.operators.support.operator import (
    BatchContext,
    SampleContext,
    SampleOperator,
    operator,
)
from penstock.operators.support.reshaped import new_shapes
from penstock.operators.support.schema import Arg, Input, Spec
from penstock.tensors.gpu.batch import StridedBatch
from penstock.types import DALIDataType, to_numpy_type

if TYPE_CHECKING:
    from penstock.tensors.gpu.batch import DeviceBatch

_INTEGERS = frozenset(t for t in DALIDataType if DALIDataType.UINT8 <= t <= DALIDataType.INT64)

_LARGEST = 2.0**62

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
    """What `reshape` and `reinterpret` have in common."""

    _dtype: DALIDataType

    def infer(self, data: Spec, shape_input: Spec | None = None) -> Spec:
        self._dtype = self._output_type(data)
        self.source_size = np.dtype(to_numpy_type(data.dtype)).itemsize
        self.target = np.dtype(to_numpy_type(self._dtype))
        self.by_input = shape_input is not None
        self.relative = self.given("rel_shape")
        self.absolute = self.given("shape")
        self.mapped = self.given("src_dims") and not (self.by_input or self.absolute)
        ways = [
            name
            for name, given in (
                ("the shape input", self.by_input),
                ("`shape`", self.absolute),
                ("`rel_shape`", self.relative),
            )
            if given
        ]
        if len(ways) > 1:
            raise UsageError(f"{' and '.join(ways)} exclude each other; give one of them.")
        if not ways and not self.mapped and self.args.layout is None and not self._retypes():
            raise UsageError(self._nothing_to_do)
        if shape_input is not None and shape_input.dtype not in _INTEGERS:
            raise DataTypeError(
                f"The shape input must hold integers, got {shape_input.dtype.name}; `cast` it "
                "first."
            )
        self._check_constants(data.ndim)
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

    _nothing_to_do = ""

    def _retypes(self) -> bool:
        return False

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

    def _check_constants(self, ndim: int | None) -> None:
        args = self.args
        for name in ("shape", "rel_shape"):
            values = getattr(args, name)
            if values is None:
                continue
            if name == "rel_shape" and not values:
                raise ArgumentValueError("`rel_shape` is empty; give a factor for each axis.")
            if 0 in values:
                raise ArgumentValueError(
                    f"`{name}` must not have extents of 0, got {list(values)}."
                )
            _check_wildcards(values, name)
        if ndim is None:
            return
        if self.mapped and args.src_dims is not None:
            _check_source_axes(args.src_dims, ndim)
        if self.relative and args.rel_shape is not None and not self.mapped:
            _check_factor_count(args.rel_shape, ndim)

    def _shape(
        self, args: Any, extents: tuple[int, ...], inputs: Sequence[np.ndarray]
    ) -> list[int]:
        """The wanted shape, a negative extent standing for one that follows from the others."""
        if self.by_input:
            wanted: list[int] = inputs[0].reshape(-1).tolist()
            _check_wildcards(wanted, "shape_input")
            return wanted
        if self.absolute:
            if "shape" in self.tensor_args:
                _check_wildcards(args.shape, "shape")
            return list(args.shape)
        if self.mapped:
            _check_source_axes(args.src_dims, len(extents))
            extents = tuple([extents[axis] if axis >= 0 else 1 for axis in args.src_dims])
        if self.relative:
            factors = args.rel_shape
            if not self.mapped:
                _check_factor_count(factors, len(extents))
            elif len(factors) != len(extents):
                raise ArgumentValueError(
                    f"`src_dims` and `rel_shape` must have as many values, got {len(extents)} and "
                    f"{len(factors)}."
                )
            _check_wildcards(factors, "rel_shape")
            sources = (*extents, 1)
            return [
                -1 if factor < 0 else _scaled(source, factor)
                for source, factor in zip(sources, factors, strict=False)
            ]
        if self.target.itemsize != self.source_size:
            return self._refitted(extents)
        return list(extents)

    def _refitted(self, extents: tuple[int, ...]) -> list[int]:
        """The shape with its last extent adapted to elements of another size."""
        if not extents:
            raise ShapeError(
                "A scalar has no axis that could be adapted to elements of another size; give a "
                "`shape`."
            )
        bytes_in_row = extents[-1] * self.source_size
        if bytes_in_row % self.target.itemsize:
            raise ShapeError(
                f"The last axis has {bytes_in_row} bytes, which is no multiple of the "
                f"{self.target.itemsize} bytes of {self._dtype.name}."
            )
        return [*extents[:-1], bytes_in_row // self.target.itemsize]

    def new_shape(
        self, args: Any, extents: tuple[int, ...], inputs: Sequence[np.ndarray]
    ) -> list[int]:
        """Shape of the output of a sample of shape `extents`; `inputs` are those behind the data.

        Raises
        ------
        ShapeError, ArgumentValueError, OutOfRangeError
            If the sample cannot have the shape that is wanted.
        """
        shape = self._shape(args, extents, inputs)
        if self.rank is not None and len(shape) != self.rank:
            raise ShapeError(
                f"The shape {tuple(shape)} has {len(shape)} axes, but the layout has "
                f"{self.rank}. Give the new `layout`, or an empty one to have none."
            )
        size = math.prod(extents)
        elements = size * self.source_size // self.target.itemsize
        for axis, extent in enumerate(shape):
            if extent < 0:
                others = math.prod(shape[:axis] + shape[axis + 1 :])
                if others == 0:
                    raise ShapeError(
                        f"The extent of axis {axis} cannot be told: the others, "
                        f"{shape[:axis] + shape[axis + 1 :]}, hold no elements."
                    )
                shape[axis] = elements // others
                break
        if math.prod(shape) * self.target.itemsize != size * self.source_size:
            raise ShapeError(
                f"Data of shape {extents} ({size} elements of {self.source_size} bytes) "
                f"does not fill the shape {tuple(shape)} ({math.prod(shape)} elements of "
                f"{self.target.itemsize} bytes)."
            )
        return shape

    def cpu(
        self, c: SampleContext, data: np.ndarray, shape_input: np.ndarray | None = None
    ) -> np.ndarray:
        shape = self.new_shape(c.args, data.shape, given(shape_input))
        if data.dtype == self.target:
            return data.reshape(shape)
        return np.ascontiguousarray(data).reshape(-1).view(self.target).reshape(shape)

    def gpu(self, c: BatchContext, data: DeviceBatch, shape_input: Any = None) -> DeviceBatch:
        rows = shape_input.rows if self.by_input else None
        shapes = new_shapes(self, c, data.shapes, rows)
        if (data.pointers % np.uint64(self.target.itemsize)).any():
            # Elements of the new size would not be aligned.
            aligned = c.empty(data.shapes, data.dtype)
            c.queue.copy_strided(StridedBatch.of(data), aligned)
            data = aligned
        return data.reshaped(shapes, self.target)


def _scaled(extent: int, factor: float) -> int:
    # DALI multiplies in float32 and rounds halves up.
    product = extent * float(np.float32(factor))
    if not product < _LARGEST:
        raise ArgumentValueError(
            f"`rel_shape` has {factor:g}, which makes no extent of an axis of extent {extent}."
        )
    return math.floor(float(np.float32(product)) + 0.5)


def _check_wildcards(values: Sequence[float], name: str) -> None:
    if sum(value < 0 for value in values) > 1:
        raise ArgumentValueError(
            f"`{name}` may have one negative extent, which is computed, got {list(values)}."
        )


def _check_source_axes(axes: Sequence[int], ndim: int) -> None:
    for position, axis in enumerate(axes):
        if not -1 <= axis < ndim:
            raise OutOfRangeError(
                f"`src_dims[{position}]` is {axis}, but it must be an axis of the input, 0 to "
                f"{ndim - 1}, or -1 for a new axis."
            )


def _check_factor_count(factors: Sequence[float], ndim: int) -> None:
    if len(factors) > ndim and not (len(factors) == ndim + 1 and factors[-1] < 0):
        raise ArgumentValueError(
            f"`rel_shape` has {len(factors)} values, but the input has {ndim} dimensions. New axes "
            "need `src_dims`."
        )


@operator(
    "reshape",
    inputs=_INPUTS,
    args=_ARGS,
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

    _nothing_to_do = (
        "There is nothing to do: give a new shape (`shape`, `rel_shape`, `src_dims` or a second "
        "input) or a new `layout`."
    )


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
    output_docs=("The same bytes, seen as another type or in another shape.",),
)
class Reinterpret(Reshaping):
    """Takes the bytes of data for elements of another type, shape or layout.

    Examples
    --------
    >>> floats = fn.reinterpret(raw_bytes, dtype=types.FLOAT)
    """

    _nothing_to_do = (
        "There is nothing to do: give a new `dtype`, a new shape (`shape`, `rel_shape`, `src_dims` "
        "or a second input) or a new `layout`."
    )

    def _retypes(self) -> bool:
        return self.args.dtype is not None

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
