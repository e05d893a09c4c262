"""`hue`, `saturation`, `hsv` and `color_twist`: linear functions of colours."""

from __future__ import annotations

from functools import partial

import numpy as np

from headrace.errors import ShapeError
from headrace.kernels.cpu import color
from headrace.kernels.gpu import color_steps as _color_steps
from headrace.kernels.plan import color_matrices
from headrace.operators.support.argument_types import DataTypeArg, FloatArg, ImageTypeArg
from headrace.operators.support.compiled_steps import CompiledStepContext, SampleColumns
from headrace.operators.support.operator import (
    BatchContext,
    ChunkContext,
    SampleContext,
    SampleOperator,
    operator,
)
from headrace.operators.support.planning import (
    NumberTable,
    PlanContext,
    Planned,
    Samples,
    plan_batch,
    repeated,
)
from headrace.operators.support.pointwise.color_chain import TAKEN, colored
from headrace.operators.support.pointwise.element_type import element_type
from headrace.operators.support.schema import Arg, Input, Spec, data_types
from headrace.tensors.gpu.batch import LazyBatch, as_contiguous
from headrace.tensors.rows import Rows
from headrace.types import DALIDataType, DALIImageType, to_numpy_type

_TYPES = data_types("UINT8 INT16 INT32 FLOAT16 FLOAT")
_INPUT = Input(
    "data",
    "Images, volumes or sequences of images, with the channels red, green and blue.",
    # Sequences are listed because of their place: 4 axes without a layout are frames.
    layouts=("HWC", "FHWC", "DHWC"),
    dtypes=_TYPES,
)
_color_operator = partial(
    operator,
    inputs=_INPUT,
    output_docs=("The changed data, in the layout of the input.",),
    frames=True,
)
_NEUTRAL = {"hue": 0.0, "saturation": 1.0, "value": 1.0, "brightness": 1.0, "contrast": 1.0}


def _number(name: str, doc: str) -> Arg:
    return Arg(name, FloatArg, _NEUTRAL[name], doc, per_frame=True)


_HUE = _number("hue", "Angle that hues are turned by, in degrees; any number.")
_SATURATION = _number(
    "saturation",
    "What distances from grey are multiplied by: 0 leaves nothing but grey, 1 all as it is.",
)
_VALUE = _number("value", "What all channels are multiplied by.")
_BRIGHTNESS = _number(
    "brightness", "What all channels are multiplied by in the end: 0 gives black."
)
_CONTRAST = _number(
    "contrast",
    "What distances from the middle grey are multiplied by: 0 leaves nothing but that grey. It is "
    "128 for integers and 0.5 for floating point, by the type of the input.",
)
_DTYPE = Arg("dtype", DataTypeArg, None, "Element type of the output; the input's when not given.")
_IMAGE_TYPE = Arg(
    "image_type",
    ImageTypeArg,
    DALIImageType.RGB,
    "Colour space of input and output.",
    unsupported="DALI takes channels to be red, green and blue whatever it says. Convert with "
    "`fn.color_space_conversion` first, or leave it out for what DALI does",
)


class _ColorTransform(SampleOperator):
    """Shared code of the operators that apply a matrix to colours."""

    keeps_shape = True
    elementwise = True

    def infer(self, data: Spec) -> Spec:
        dtype = element_type(self.args, data, _TYPES)
        self._dtype = np.dtype(to_numpy_type(dtype))
        self._center = 0.5 if np.dtype(to_numpy_type(data.dtype)).kind == "f" else 128.0
        self._adjustments = NumberTable(self, _NEUTRAL)
        return data._replace(dtype=dtype)

    def plan(self, c: PlanContext, data: Samples) -> Planned:
        """Matrix and offsets of each sample, float32 ``(samples, 15)``."""
        shapes = data.shapes
        numbers = np.empty((len(shapes), 15), np.float32)
        adjustments = self._adjustments.rows(c, len(shapes))
        constants = self._center, color_matrices.FROM_YIQ, color_matrices.TO_YIQ
        bad = color_matrices.color_matrices(as_contiguous(shapes), adjustments, *constants, numbers)
        if bad >= 0:
            raise _not_three_channels(tuple(shapes[bad].tolist()))
        return Planned(shapes, (numbers,))

    def cpu(self, c: SampleContext, data: np.ndarray) -> np.ndarray:
        out = c.out
        color.transform_pixels(data, c.row[0], out)
        return out

    chunks_light = True

    def cpu_chunk(self, c: ChunkContext, data: Rows) -> Rows | None:
        if not color.takes_rows(data.dtype, self._dtype):
            return None
        out = c.out()
        color.transform_rows(data, c.column(0), out)
        return out

    def compiled(self, c: CompiledStepContext, data: SampleColumns) -> SampleColumns | None:
        from headrace.kernels.cpu import pointwise_steps

        if not color.takes_rows(data.dtype, self._dtype):
            return None
        out = c.out()
        numbers = c.planned(15, out)
        carry = pointwise_steps.coloring(data.dtype, out.dtype)
        c.steps.add(None, carry, (*data.words, *out.words[:2], numbers))
        return out

    takes = TAKEN
    returns_lazy = (LazyBatch,)

    def gpu(self, c: BatchContext, data: LazyBatch) -> LazyBatch:
        numbers = plan_batch(self, c, data).table[0][:, :12]
        numbers = repeated(numbers, len(data))
        return colored(c.queue, _color_steps.Matrix(self._dtype), data, data.shapes, (numbers,))


def _not_three_channels(shape: tuple[int, ...]) -> ShapeError:
    return ShapeError(
        f"The operator takes pixels of three channels (red, green and blue), but the sample has "
        f"{shape[-1]}: its shape is {tuple(shape)}. Use `fn.color_space_conversion` for grey "
        "images, and slice off what is not a colour."
    )


@_color_operator("hue", args=(_HUE, _DTYPE, _IMAGE_TYPE))
class Hue(_ColorTransform):
    """Turns the hue of images.

    Colours are turned around the axis of greys in YIQ, the colour space of NTSC television, which
    is one matrix. Integers are rounded, halves away from zero, and saturate.

    Examples
    --------
    >>> turned = fn.hue(images, hue=fn.random.uniform(range=(-20.0, 20.0)))
    """


@_color_operator("saturation", args=(_SATURATION, _DTYPE, _IMAGE_TYPE))
class Saturation(_ColorTransform):
    """Changes the saturation of images.

    A colour's distance from the grey of its luma (ITU-R BT.601) is scaled. Integers are rounded,
    halves away from zero, and saturate.

    Examples
    --------
    >>> pale = fn.saturation(images, saturation=0.4)
    """


@_color_operator(
    "hsv",
    args=(
        _HUE,
        _SATURATION,
        _VALUE,
        Arg("dtype", DataTypeArg, DALIDataType.UINT8, "Element type of the output."),
    ),
)
class Hsv(_ColorTransform):
    """Changes hue, saturation and value of images.

    The three are one matrix of red, green and blue: a turn around the axis of greys in YIQ, the
    colour space of NTSC television, and a scaling of distances from that axis and along it. This
    is not the colour space HSV, which is no linear function of RGB. Integers are rounded, halves
    away from zero, and saturate.

    Unlike those of similar operators, the output is uint8 where `dtype` does not say otherwise.

    Examples
    --------
    >>> varied = fn.hsv(images, hue=20.0, saturation=1.3, value=0.9)
    """


@_color_operator(
    "color_twist", args=(_HUE, _SATURATION, _BRIGHTNESS, _CONTRAST, _DTYPE, _IMAGE_TYPE)
)
class ColorTwist(_ColorTransform):
    """Changes hue, saturation, brightness and contrast of images.

    All together are one matrix of red, green and blue, and an offset: `hue` and `saturation` act
    as in the operators of these names; then distances from the middle grey are multiplied by
    `contrast`, and the result by `brightness`. Integers are rounded, halves away from zero, and
    saturate.

    Examples
    --------
    >>> varied = fn.color_twist(
    ...     images,
    ...     hue=fn.random.uniform(range=(-10.0, 10.0)),
    ...     saturation=fn.random.uniform(range=(0.7, 1.3)),
    ...     brightness=fn.random.uniform(range=(0.8, 1.2)),
    ...     contrast=fn.random.uniform(range=(0.8, 1.2)),
    ... )
    """
