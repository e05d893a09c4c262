"""Tensors filled with a value: `zeros`, `ones`, `full` and their `_like` forms."""

from __future__ import annotations

import numpy as np

from headrace.errors import DataTypeError, LayoutError, ShapeError
from headrace.operators.support.argument_types import DataTypeArg, IntListArg, LayoutArg
from headrace.operators.support.operator import SampleContext, SampleOperator, operator
from headrace.operators.support.schema import Arg, Input, Spec
from headrace.types import DALIDataType, constant_array, to_numpy_type

_SHAPE = Arg(
    "shape", IntListArg, None, "Shape of the output; without axes when not given.", per_sample=True
)
_LAYOUT = Arg("layout", LayoutArg, None, "Layout of the output.")
_DTYPE = Arg("dtype", DataTypeArg, DALIDataType.INT32, "Element type of the output.")
_LIKE_DTYPE = Arg(
    "dtype", DataTypeArg, None, "Element type of the output, if not that of the input."
)
_DATA_LIKE = Input("data_like", "Data whose shape, layout and element type the output has.")
_FILL_VALUE = Input(
    "fill_value", "Value to fill with: a scalar, or data that broadcasts to the output's shape."
)


class _GivenShape(SampleOperator):
    """Base of the operators whose output has the shape given by the argument `shape`."""

    def shaped(self, dtype: DALIDataType) -> Spec:
        self.dtype = _numpy_type(dtype)
        self.shape: tuple[int, ...] | None = None
        ndim: int | None
        if "shape" in self.tensor_args:
            # A tensor tells its own length with the data only; a layout tells it before.
            ndim = 1 if self.tensor_args["shape"].ndim == 0 else None
            if ndim is None and self.args.layout:
                ndim = len(self.args.layout)
        else:
            self.shape = _checked(self.args.shape or ())
            ndim = len(self.shape)
        layout = self.args.layout or ""
        if layout and len(layout) != ndim:
            raise LayoutError(
                f'`layout`="{layout}" names {len(layout)} axes, but `shape` gives {ndim}.'
            )
        self.ndim = ndim
        return Spec(dtype, ndim, layout)

    def sample_shape(self, c: SampleContext) -> tuple[int, ...]:
        """Shape of this sample's output."""
        if self.shape is not None:
            return self.shape
        shape = _checked(c.args.shape)
        if self.ndim is not None and len(shape) != self.ndim:
            raise ShapeError(
                f"`shape`={shape} has {len(shape)} extents, but the output has {self.ndim} axes."
            )
        return shape


@operator("zeros", args=(_SHAPE, _DTYPE, _LAYOUT), devices=("cpu",))
class Zeros(_GivenShape):
    """Make tensors full of zeros."""

    value = 0

    def infer(self) -> Spec:
        return self.shaped(self.args.dtype)

    def cpu(self, c: SampleContext) -> np.ndarray:
        out = c.empty(self.sample_shape(c), self.dtype)
        out.fill(self.value)
        return out


@operator("ones", args=(_SHAPE, _DTYPE, _LAYOUT), devices=("cpu",))
class Ones(Zeros):
    """Make tensors full of ones."""

    value = 1


@operator("full", inputs=_FILL_VALUE, args=(_SHAPE, _LAYOUT), devices=("cpu",))
class Full(_GivenShape):
    """Make tensors of a given shape out of `fill_value`, repeated by NumPy's broadcasting rules.

    Where the output has no axes, it is the first of several values.
    """

    def infer(self, fill_value: Spec) -> Spec:
        return self.shaped(fill_value.dtype)

    def cpu(self, c: SampleContext, fill_value: np.ndarray) -> np.ndarray:
        shape = self.sample_shape(c)
        if not shape and fill_value.size:
            fill_value = fill_value.reshape(-1)[0]  # as DALI: the first of several
        fill = _broadcast(fill_value, shape)
        out = c.empty(shape, self.dtype)
        np.copyto(out, fill)
        return out


@operator("zeros_like", inputs=_DATA_LIKE, args=(_LIKE_DTYPE,), devices=("cpu",))
class ZerosLike(SampleOperator):
    """Make tensors of zeros with the shapes, layout and element type of `data_like`."""

    value = 0

    def infer(self, data_like: Spec) -> Spec:
        dtype = data_like.dtype if self.args.dtype is None else self.args.dtype
        self.dtype = _numpy_type(dtype)
        return data_like._replace(dtype=dtype)

    def cpu(self, c: SampleContext, data_like: np.ndarray) -> np.ndarray:
        out = c.empty(data_like.shape, self.dtype)
        out.fill(self.value)
        return out


@operator("ones_like", inputs=_DATA_LIKE, args=(_LIKE_DTYPE,), devices=("cpu",))
class OnesLike(ZerosLike):
    """Make tensors of ones with the shapes, layout and element type of `data_like`."""

    value = 1


@operator("full_like", inputs=(_DATA_LIKE, _FILL_VALUE), devices=("cpu",))
class FullLike(SampleOperator):
    """Make tensors with the shapes, layout and element type of `data_like` out of `fill_value`.

    Values are rounded (halves away from zero) and kept inside the range of the element type.
    """

    def infer(self, data_like: Spec, fill_value: Spec) -> Spec:
        self.dtype = data_like.dtype
        self.numpy_dtype = _numpy_type(self.dtype)
        _numpy_type(fill_value.dtype)
        return data_like

    def cpu(self, c: SampleContext, data_like: np.ndarray, fill_value: np.ndarray) -> np.ndarray:
        fill = fill_value
        if fill.dtype != self.numpy_dtype:
            fill = constant_array(fill, self.dtype)
        fill = _broadcast(fill, data_like.shape)
        out = c.empty(data_like.shape, self.numpy_dtype)
        np.copyto(out, fill)
        return out


def _broadcast(fill: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    # Leading axes of extent one say nothing; NumPy drops them in assignments but not here.
    while fill.ndim > len(shape) and fill.shape[0] == 1:
        fill = fill[0]
    try:
        return np.broadcast_to(fill, shape)
    except ValueError:
        raise ShapeError(
            f"`fill_value` of shape {fill.shape} cannot be broadcast to the output's shape {shape}."
        ) from None


def _checked(shape: tuple[int, ...]) -> tuple[int, ...]:
    if any(extent < 0 for extent in shape):
        raise ShapeError(f"`shape`={tuple(shape)} has a negative extent.")
    return tuple(shape)


def _numpy_type(dtype: DALIDataType) -> np.dtype:
    try:
        return np.dtype(to_numpy_type(dtype))
    except KeyError:
        raise DataTypeError(
            f"Data of type {dtype.name} cannot be filled; only numbers and booleans can."
        ) from None
