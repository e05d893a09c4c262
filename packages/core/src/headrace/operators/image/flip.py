"""`flip`."""

from __future__ import annotations

import numpy as np

from headrace.kernels.cpu.flip import flip_into
from headrace.operators.support.argument_types import IntArg
from headrace.operators.support.arguments import numbers_of
from headrace.operators.support.compiled_steps import (
    CompiledStepContext,
    SampleColumns,
    Word,
)
from headrace.operators.support.lazy_image import LazyImage, LazyMirror
from headrace.operators.support.operator import (
    BatchContext,
    ChunkContext,
    SampleContext,
    SampleOperator,
    operator,
)
from headrace.operators.support.planning import PlanContext, Planned, Samples
from headrace.operators.support.schema import Arg, Input, Spec
from headrace.operators.support.windows.cut import compiled_mirror
from headrace.operators.support.windows.partial_batch import partial_batch
from headrace.tensors.gpu.batch import LazyBatch
from headrace.tensors.rows import Rows
from headrace.tensors.strided_rows import StridedRows

_LAYOUTS = ("FDHWC", "FHWC", "DHWC", "HWC", "FCDHW", "FCHW", "CDHW", "CHW")
_AXES = (("depthwise", "D"), ("vertical", "H"), ("horizontal", "W"))


@operator(
    "flip",
    inputs=Input("data", "Images, volumes or sequences of them.", layouts=_LAYOUTS),
    args=(
        Arg("horizontal", IntArg, 1, "Whether left and right change places.", per_sample=True),
        Arg("vertical", IntArg, 0, "Whether top and bottom change places.", per_sample=True),
        Arg(
            "depthwise",
            IntArg,
            0,
            "Whether front and back of a volume change places; images are left as they are.",
            per_sample=True,
        ),
    ),
    output_docs=("The mirrored data, in the layout of the input.",),
)
class Flip(SampleOperator):
    """Mirrors images and volumes.

    Examples
    --------
    >>> mirrored = fn.flip(images, horizontal=fn.random.coin_flip())
    """

    def infer(self, data: Spec) -> Spec:
        # Where the rank shows only in the data, it tells the layout, too.
        layouts = [data.layout] if data.ndim is not None else _LAYOUTS
        self._axes: dict[int, tuple[tuple[int, str], ...]] = {}
        self._columns: dict[int, int] = {}
        for layout in layouts:
            self._axes.setdefault(
                len(layout),
                tuple(
                    sorted(
                        (layout.index(letter), name) for name, letter in _AXES if letter in layout
                    )
                ),
            )
            self._columns.setdefault(len(layout), layout.index("W"))
        return data

    unplanned = tuple(name for name, _ in _AXES)

    def plan(self, c: PlanContext, data: Samples) -> Planned:
        return Planned(data.shapes)

    def _mirrored(self, c: SampleContext, data: np.ndarray | LazyImage) -> tuple[int, ...]:
        args = c.args
        shape = data.shape
        return tuple([axis for axis, name in self._axes[len(shape)] if getattr(args, name)])

    takes = (LazyImage, LazyBatch, StridedRows)
    returns_lazy = (LazyImage, LazyBatch)

    def cpu(self, c: SampleContext, data: np.ndarray | LazyImage) -> np.ndarray | LazyImage:
        axes = self._mirrored(c, data)
        if not axes:
            return data
        if not isinstance(data, np.ndarray):
            return LazyMirror(data, rows=0 in axes, columns=1 in axes)
        if self._columns[data.ndim] not in axes:
            # Whole rows change places: a view will do, as good as any other to read from.
            order = [slice(None, None, -1 if k in axes else 1) for k in range(axes[-1] + 1)]
            return data[tuple(order)]
        # Rows read backwards are slow for every reader: better mirrored here, and well.
        out = c.out
        flip_into(data, axes, out)
        return out

    chunks_light = True

    def cpu_chunk(self, c: ChunkContext, data: Rows) -> Rows | None:
        views = StridedRows.of(data)
        if views is None:
            return None
        for axis, name in self._axes[data.shapes.shape[1]]:
            mirrored = c.flags(name)
            if mirrored.any():
                views = views.mirrored(axis, mirrored)
        return views

    compiled_views = True

    def compiled(self, c: CompiledStepContext, data: SampleColumns) -> SampleColumns | None:
        axes = self._axes[data.ndim]
        words: list[Word] = [len(axes)]
        for axis, name in axes:
            mirrors = c.number(name, getattr(self.args, name), is_flag=True)
            if mirrors is None:
                return None
            words += [axis, *mirrors]
        return compiled_mirror(c, data, words)

    def gpu(self, c: BatchContext, data: LazyBatch) -> LazyBatch:
        for axis, name in self._axes[data.ndim]:
            mirrored = numbers_of(c, name, np.bool_)
            # One way for all draws, so that iterations are alike.
            if name in self.tensor_args or mirrored.any():
                data = partial_batch(c, data).flipped(axis, mirrored)
        return data
