"""`color_space_conversion`."""

from __future__ import annotations

import numpy as np

from headrace.errors import ArgumentValueError, ShapeError
from headrace.kernels.cpu import grey as _grey
from headrace.kernels.gpu import color_steps as _color_steps
from headrace.operators.support.argument_types import ImageTypeArg
from headrace.operators.support.operator import (
    BatchContext,
    ChunkContext,
    SampleContext,
    SampleOperator,
    operator,
)
from headrace.operators.support.planning import PlanContext, Planned, Samples, plan_batch
from headrace.operators.support.pointwise.color_chain import TAKEN, colored
from headrace.operators.support.schema import REQUIRED, Arg, Input, Spec
from headrace.tensors.gpu.batch import LazyBatch
from headrace.tensors.rows import Rows
from headrace.types import DALIDataType, DALIImageType

_SPACES = (DALIImageType.RGB, DALIImageType.BGR, DALIImageType.GRAY, DALIImageType.YCbCr)


@operator(
    "color_space_conversion",
    inputs=Input(
        "data",
        "Images, volumes or sequences of them.",
        layouts=("FDHWC", "FHWC", "DHWC", "HWC"),
        dtypes=(DALIDataType.UINT8,),
    ),
    args=(
        Arg(
            *("image_type", ImageTypeArg, REQUIRED, "Colour space of the input."),
            choices=_SPACES,
            late=True,
        ),
        Arg(
            "output_type",
            ImageTypeArg,
            REQUIRED,
            "Colour space of the output, another one than `image_type`.",
            choices=_SPACES,
            late=True,
        ),
    ),
    output_docs=("The converted data, in the layout of the input.",),
)
class ColorSpaceConversion(SampleOperator):
    """Converts colours between RGB, BGR, grey and YCbCr.

    Grey is the luma of ITU-R BT.601, ``0.299 R + 0.587 G + 0.114 B``, and has one channel, the
    other spaces three. YCbCr is that of ITU-R BT.601 for television: Y goes from 16 to 235, Cb and
    Cr from 16 to 240 around 128. From grey, the other channels are made to say so; to grey from
    YCbCr, Y alone is used. Results are rounded, halves away from zero, and saturate.

    Examples
    --------
    >>> grey = fn.color_space_conversion(images, image_type=types.RGB, output_type=types.GRAY)
    """

    def infer(self, data: Spec) -> Spec:
        from headrace.kernels.cpu.color_spaces import CHANNELS, convert_pixels

        given, wanted = self.args.image_type, self.args.output_type
        if given == wanted:
            raise ArgumentValueError(
                f"`image_type` and `output_type` are both {given.name}: there is nothing to "
                "convert. Leave the operator out."
            )
        self._spaces = given.name, wanted.name
        self._channels, self._made = CHANNELS[given.name], CHANNELS[wanted.name]
        self._convert = convert_pixels
        self.chunks_light = self._made < self._channels and given.name != "YCbCr"
        return data

    def plan(self, c: PlanContext, data: Samples) -> Planned:
        shapes = data.shapes
        for wrong in shapes[shapes[:, -1] != self._channels][:1].tolist():
            raise ShapeError(
                f"`image_type` is {self._spaces[0]}, which has {self._channels} channels, but the "
                f"sample has {wrong[-1]}: its shape is {tuple(wrong)}."
            )
        if self._made != self._channels:
            shapes = shapes.copy()
            shapes[:, -1] = self._made
        return Planned(shapes)

    def cpu(self, c: SampleContext, data: np.ndarray) -> np.ndarray:
        out = c.out
        self._convert(data, self._spaces, out)
        return out

    def cpu_chunk(self, c: ChunkContext, data: Rows) -> Rows:
        """Grey images."""
        out = c.out()
        assert out.flat is not None
        is_bgr = self._spaces[0] == "BGR"
        _grey.grey_rows(data.addresses, out.sizes, is_bgr, out.flat, out.begins)
        return out

    takes = TAKEN
    returns_lazy = (LazyBatch,)

    def gpu(self, c: BatchContext, data: LazyBatch) -> LazyBatch:
        (shapes,) = plan_batch(self, c, data).shapes
        shapes = np.broadcast_to(shapes, data.shapes.shape)
        return colored(
            c.queue, _color_steps.ColorConversion(*self._spaces, self._made), data, shapes
        )
