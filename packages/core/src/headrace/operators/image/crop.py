"""`crop`."""

from __future__ import annotations

import numpy as np

from headrace.operators.support.compiled_steps import CompiledStepContext, SampleColumns
from headrace.operators.support.lazy_image import LazyImage, LazyPixels
from headrace.operators.support.operator import (
    BatchContext,
    ChunkContext,
    SampleContext,
    SampleOperator,
    operator,
)
from headrace.operators.support.planning import PlanContext, Planned, Samples, plan_batch
from headrace.operators.support.schema import Input, Spec
from headrace.operators.support.video.lazy_clip import LazyClip
from headrace.operators.support.windows.arguments import (
    CROP_ARGS,
    CROP_LAYOUTS,
    CROP_RULES,
    OUT_OF_BOUNDS_ARGS,
    CropWindow,
    check_crop,
)
from headrace.operators.support.windows.cut import CUT_DTYPE_ARGS, Cutter
from headrace.tensors.gpu.batch import LazyBatch
from headrace.tensors.rows import Rows
from headrace.tensors.strided_rows import StridedRows


@operator(
    "crop",
    inputs=Input("data", "Images, volumes or sequences of them.", layouts=CROP_LAYOUTS),
    args=(*CROP_ARGS, *OUT_OF_BOUNDS_ARGS, *CUT_DTYPE_ARGS),
    rules=CROP_RULES,
    output_docs=("The window, in the layout of the input.",),
)
class Crop(SampleOperator):
    """Cuts a window out of each sample.

    The window's extents are given in pixels and its position as a fraction of the room it has:
    at 0 it touches the first row (or column, or slice), at 1 the last, at 0.5 it is centred. An
    axis without a size is kept whole.

    Sequences are cut alike in all their frames. Where a sequence has no depth, `crop_d` and the
    first of three values of `crop` count frames.

    A window inside of the data costs nothing: it is a view, and an image decoder in front of it
    decodes no more than it.

    Examples
    --------
    >>> centre = fn.crop(images, crop=(224, 224))
    >>> corner = fn.crop(images, crop=(224, 224), crop_pos_x=0.0, crop_pos_y=0.0)
    """

    def check_constants(self) -> None:
        check_crop(self.args)

    def infer(self, data: Spec) -> Spec:
        self._cutter = Cutter(self, data)
        # Where the rank shows only in the data, it tells the layout, too.
        layouts = [data.layout] if data.ndim is not None else CROP_LAYOUTS
        self._windows: dict[int, CropWindow] = {}
        for layout in layouts:
            self._windows.setdefault(len(layout), CropWindow(self, layout))
        return data._replace(dtype=self._cutter.dtype)

    def plan(self, c: PlanContext, data: Samples | LazyBatch) -> Planned:
        extents = data.shapes
        return self._cutter.plan(extents, *self._windows[extents.shape[1]].plan(c, extents))

    def cpu(self, c: SampleContext, data: np.ndarray | LazyPixels) -> np.ndarray | LazyPixels:
        return self._cutter.cut(c, data)

    chunks_light = True

    def cpu_chunk(self, c: ChunkContext, data: Rows) -> Rows | None:
        return self._cutter.cut_rows(c, data)

    compiled_views = True

    def compiled(self, c: CompiledStepContext, data: SampleColumns) -> SampleColumns | None:
        return self._cutter.compiled(c, data, self._windows[data.ndim].words(c))

    takes = (LazyPixels, LazyBatch, StridedRows)
    returns_lazy = (LazyImage, LazyClip, LazyBatch)

    def gpu(self, c: BatchContext, data: LazyBatch) -> LazyBatch:
        return self._cutter.cut_batch(c, data, plan_batch(self, c, data))
