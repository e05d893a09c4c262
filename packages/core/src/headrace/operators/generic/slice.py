"""`slice`."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.operators.support.arguments import given
from headrace.operators.support.compiled_steps import CompiledStepContext, SampleColumns
from headrace.operators.support.lazy_image import LazyImage, LazyPixels
from headrace.operators.support.operator import (
    BatchContext,
    ChunkContext,
    SampleContext,
    SampleOperator,
    operator,
)
from headrace.operators.support.planning import PlanContext, Planned, plan_batch
from headrace.operators.support.schema import Input, Spec
from headrace.operators.support.video.lazy_clip import LazyClip
from headrace.operators.support.windows.arguments import (
    OUT_OF_BOUNDS_ARGS,
    SLICE_ARGS,
    SLICE_RULES,
    SliceWindow,
)
from headrace.operators.support.windows.cut import CUT_DTYPE_ARGS, Cutter
from headrace.tensors.gpu.batch import LazyBatch
from headrace.tensors.rows import Rows
from headrace.tensors.strided_rows import StridedRows


@operator(
    "slice",
    inputs=(
        Input("data", "Data of any rank and layout."),
        Input(
            "anchor",
            "First coordinates of the window, in pixels or, for floating point numbers, as "
            "fractions of the extents.",
            device="cpu",
            optional=True,
        ),
        Input(
            "shape_input",
            "Extents of the window, of the type of `anchor`.",
            device="cpu",
            optional=True,
        ),
    ),
    args=(*SLICE_ARGS, *OUT_OF_BOUNDS_ARGS, *CUT_DTYPE_ARGS),
    rules=SLICE_RULES,
    output_docs=("The window, in the layout of the input.",),
)
class Slice(SampleOperator):
    """Cuts a window, given by its coordinates, out of each sample.

    The window is told by named arguments (`start` or `rel_start`, and one of `end`, `rel_end`,
    `shape` and `rel_shape`) or by two more inputs, its anchor and shape. Coordinates belong to
    the axes listed in `axes` or `axis_names`; all other axes are kept whole.

    Fractions are multiplied with the extents; then the start and the end of the window are each
    rounded to the nearest integer, halves away from zero.

    A window inside of the data costs nothing: it is a view, and an image decoder in front of it
    decodes no more than it.

    Examples
    --------
    >>> rows = fn.slice(images, start=10, end=20, axes=[0])
    >>> middle = fn.slice(images, rel_start=(0.25, 0.25), rel_end=(0.75, 0.75), axis_names="HW")
    >>> boxes = fn.slice(images, anchors, shapes)
    """

    def infer(
        self, data: Spec, anchor: Spec | None = None, shape_input: Spec | None = None
    ) -> Spec:
        self._cutter = Cutter(self, data)
        self._window = SliceWindow(self, data, *given(anchor, shape_input))
        self.plans_values = self._window.positional
        self.chunked = self._cutter.are_signals
        self.chunks_light = not self.chunked
        return data._replace(dtype=self._cutter.dtype)

    def plan(
        self, c: PlanContext, data: Any, anchor: Any = None, shape_input: Any = None
    ) -> Planned:
        extents = data.shapes
        positional = [s.rows if s.dense is None else s.dense for s in given(anchor, shape_input)]
        return self._cutter.plan(extents, *self._window.plan(c, extents, *positional))

    def cpu(
        self,
        c: SampleContext,
        data: np.ndarray | LazyPixels,
        anchor: np.ndarray | None = None,
        shape_input: np.ndarray | None = None,
    ) -> np.ndarray | LazyPixels:
        return self._cutter.cut(c, data)

    takes = (LazyPixels, LazyBatch, StridedRows)
    returns_lazy = (LazyImage, LazyClip, LazyBatch)

    def cpu_chunk(self, c: ChunkContext, *inputs: Rows) -> Rows | None:
        cut = self._cutter.cut_signals if self.chunked else self._cutter.cut_rows
        return cut(c, inputs[0])

    compiled_views = True

    def compiled(self, c: CompiledStepContext, *inputs: SampleColumns) -> SampleColumns | None:
        data = inputs[0]
        return self._cutter.compiled(c, data, self._window.words(c, data.ndim))

    def gpu(
        self, c: BatchContext, data: LazyBatch, anchor: Any = None, shape_input: Any = None
    ) -> LazyBatch:
        planned = plan_batch(self, c, data, *given(anchor, shape_input))
        return self._cutter.cut_batch(c, data, planned)
