"""`bb_flip`."""

from __future__ import annotations

import numpy as np

from headrace.kernels.cpu import flip_points as _cpu
from headrace.kernels.gpu import flip_points as _gpu
from headrace.operators.boxes.bbox_paste import BOXES, LTRB, check_boxes
from headrace.operators.support.argument_types import IntArg
from headrace.operators.support.arguments import numbers_of
from headrace.operators.support.operator import BatchContext, ChunkContext, SampleOperator, operator
from headrace.operators.support.planning import PlanContext, Planned, Samples, plan_batch, repeated
from headrace.operators.support.schema import Arg, Spec
from headrace.tensors.gpu.batch import DeviceBatch
from headrace.tensors.rows import Rows


@operator(
    "bb_flip",
    inputs=BOXES,
    args=(
        Arg("horizontal", IntArg, 1, "Whether left and right change places.", per_sample=True),
        Arg("vertical", IntArg, 0, "Whether top and bottom change places.", per_sample=True),
        LTRB,
    ),
    output_docs=("The mirrored boxes, without a layout.",),
)
class BbFlip(SampleOperator):
    """Mirrors boxes along with an image that `flip` mirrors.

    Examples
    --------
    >>> mirror = fn.random.coin_flip()
    >>> images = fn.flip(images, horizontal=mirror)
    >>> boxes = fn.bb_flip(boxes, horizontal=mirror, ltrb=True)
    """

    def infer(self, boxes: Spec) -> Spec:
        return boxes._replace(layout="")

    def plan(self, c: PlanContext, boxes: Samples) -> Planned:
        check_boxes(boxes.shapes)
        flips = [numbers_of(c, name, np.int32) for name in ("horizontal", "vertical")]
        shapes = repeated(boxes.shapes, c.size)
        return Planned(shapes, (np.stack(flips, axis=1) != 0,))

    chunked = True

    def cpu_chunk(self, c: ChunkContext, boxes: Rows) -> Rows:
        out = c.out()
        assert out.flat is not None
        flips = np.asarray(c.table[0], np.bool_).reshape(-1, 2)
        ltrb = self.args.ltrb
        _cpu.flip_boxes(boxes.addresses, boxes.sizes // 4, flips, ltrb, out.flat, out.begins)
        return out

    def gpu(self, c: BatchContext, boxes: DeviceBatch) -> DeviceBatch:
        out = c.empty(boxes.extents, boxes.dtype)
        _gpu.flip_boxes(c.queue, boxes, plan_batch(self, c, boxes).table[0], self.args.ltrb, out)
        return out
