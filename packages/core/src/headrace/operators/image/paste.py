"""`paste`."""

from __future__ import annotations

import numpy as np

from headrace.errors import ArgumentValueError, ShapeError
from headrace.kernels.gpu import window as _gpu
from headrace.operators.boxes.bbox_paste import PASTE_ARGS
from headrace.operators.support.argument_types import FloatArg, IntArg, IntListArg
from headrace.operators.support.arguments import numbers_of
from headrace.operators.support.compiled_steps import CompiledStepContext, SampleColumns
from headrace.operators.support.operator import (
    BatchContext,
    SampleContext,
    SampleOperator,
    operator,
)
from headrace.operators.support.planning import PlanContext, Planned, Samples, plan_batch, repeated
from headrace.operators.support.schema import REQUIRED, Arg, Input, Spec
from headrace.tensors.gpu.batch import DeviceBatch, StridedBatch
from headrace.types import DALIDataType


@operator(
    "paste",
    inputs=Input("images", "Images.", layouts=("HWC",), dtypes=(DALIDataType.UINT8,)),
    args=(
        Arg(
            "ratio",
            FloatArg,
            REQUIRED,
            "Extents of the canvas, in those of the image: at least 1.",
            per_sample=True,
        ),
        Arg(
            "fill_value",
            IntListArg,
            REQUIRED,
            "Colour of the canvas: a number for each channel, or one for all. What does not fit "
            "keeps its lowest bits.",
        ),
        Arg("n_channels", IntArg, 3, "Number of channels."),
        *PASTE_ARGS,
        Arg(
            "min_canvas_size",
            FloatArg,
            0.0,
            "Smallest extent of a canvas, in pixels.",
            per_sample=True,
        ),
    ),
    output_docs=("The canvases with their images, in the layout of the input.",),
)
class Paste(SampleOperator):
    """Puts images on larger canvases of one colour.

    Examples
    --------
    >>> wide = fn.paste(images, ratio=fn.random.uniform(range=(1, 4)), fill_value=(124, 116, 104))
    """

    def infer(self, images: Spec) -> Spec:
        channels, fill = self.args.n_channels, self.args.fill_value
        if len(fill) not in (1, channels):
            raise ShapeError(
                f"`fill_value` expects either a single value or a list of {channels} elements, as "
                f"many as `n_channels` says; got {len(fill)}."
            )
        self._fill = np.resize(np.array(fill, np.int64), channels).astype(np.uint8)
        return images

    def plan(self, c: PlanContext, images: Samples) -> Planned:
        extents = images.shapes
        if (extents[:, 2] != self.args.n_channels).any():
            raise ShapeError(
                f"`n_channels` is {self.args.n_channels}, but there is an image of "
                f"{extents[extents[:, 2] != self.args.n_channels][0, 2]} channels."
            )
        ratio, smallest, *shares = (
            numbers_of(c, name, np.float32)
            for name in ("ratio", "min_canvas_size", "paste_y", "paste_x")
        )
        if not (ratio >= 1).all():
            raise ArgumentValueError(
                f"A ratio of less than 1 is not supported, got `ratio` {ratio.min()}."
            )
        if not (smallest >= 0).all():
            raise ArgumentValueError(
                f"`min_canvas_size` of less than 0 is not supported, got {smallest.min()}."
            )
        shapes = np.empty((c.size, 3), np.int64)
        places = np.zeros((c.size, 3), np.int64)
        shapes[:, 2] = extents[:, 2]
        for axis, (name, share) in enumerate(zip(("paste_y", "paste_x"), shares, strict=True)):
            if not ((share >= 0) & (share <= 1)).all():
                wrong = share[~((share >= 0) & (share <= 1))][0]
                raise ArgumentValueError(f"`{name}` must be in range [0, 1], got {wrong}.")
            extent = extents[:, axis].astype(np.float32)
            canvas = np.maximum(extent * ratio, smallest).astype(np.int64)
            shapes[:, axis] = canvas
            gap = (canvas - extents[:, axis]).astype(np.float32)
            places[:, axis] = (share * gap).astype(np.int64)
        return Planned(shapes, (places,))

    def cpu(self, c: SampleContext, image: np.ndarray) -> np.ndarray:
        y, x, _ = c.row[0]
        out = c.out
        height, width, _ = image.shape
        inside = slice(y, y + height)
        out[:y] = out[y + height :] = self._fill
        out[inside, :x] = out[inside, x + width :] = self._fill
        out[inside, x : x + width] = image
        return out

    compiled_views = True

    def compiled(self, c: CompiledStepContext, images: SampleColumns) -> SampleColumns:
        from headrace.kernels.cpu import paste_steps

        out = c.out()
        places = c.planned(3, out)
        words = *images.view_words, *out.words[:2], places, self._fill
        c.steps.add(None, paste_steps.carry, words)
        return out

    takes = (StridedBatch,)

    def gpu(self, c: BatchContext, images: DeviceBatch | StridedBatch) -> DeviceBatch:
        planned = plan_batch(self, c, images)
        count = c.size
        shapes = np.ascontiguousarray(repeated(planned.shapes[0], count))
        out = c.empty(shapes, np.uint8)
        anchors = -repeated(planned.table[0], count)
        _gpu.window(
            c.queue,
            StridedBatch.of(images),
            anchors,
            out,
            policy="constant",
            fill=self._fill,
            fill_axis=2,
        )
        return out
