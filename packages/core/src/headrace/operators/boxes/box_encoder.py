"""`box_encoder`."""

from __future__ import annotations

import numpy as np

from headrace.errors import ArgumentValueError, ShapeError
from headrace.kernels.cpu import box_encoder as _cpu
from headrace.kernels.gpu import box_encoder as _gpu
from headrace.operators.support.argument_types import BoolArg, FloatArg, FloatListArg
from headrace.operators.support.operator import (
    BatchContext,
    SampleContext,
    SampleOperator,
    operator,
)
from headrace.operators.support.planning import PlanContext, Planned, Samples, plan_batch
from headrace.operators.support.schema import REQUIRED, Arg, Input, Spec
from headrace.tensors.gpu.batch import DeviceBatch, volumes
from headrace.types import DALIDataType


@operator(
    "box_encoder",
    inputs=(
        Input(
            "boxes",
            "Boxes, left, top, right and bottom each: shape (boxes, 4).",
            dtypes=(DALIDataType.FLOAT,),
        ),
        Input("labels", "A label for each box, shape (boxes,).", dtypes=(DALIDataType.INT32,)),
    ),
    args=(
        Arg(
            "anchors",
            FloatListArg,
            REQUIRED,
            "Default boxes, left, top, right and bottom of one after the other.",
        ),
        Arg(
            "criteria",
            FloatArg,
            0.5,
            "An anchor stands for a box if their intersection over union is larger; from 0 to 1.",
        ),
        Arg(
            "offset",
            BoolArg,
            False,
            "Whether to give, in place of a box, how it differs from its anchor.",
        ),
        Arg("means", FloatListArg, (0.0,) * 4, "Subtracted from differences of x, y, w and h."),
        Arg("stds", FloatListArg, (1.0,) * 4, "Divisors of these differences then."),
        Arg("scale", FloatArg, 1.0, "Factor of boxes and anchors, applied before."),
    ),
    num_outputs=2,
    output_docs=(
        "Middle, width and height of the box that each anchor stands for, or its own; or offsets.",
        "The label of that box for each anchor, or 0.",
    ),
)
class BoxEncoder(SampleOperator):
    """Tells what each of many default boxes stands for, as SSD detectors are trained with.

    An anchor stands for the box that it overlaps most, if it overlaps it enough, and for each box
    there is at least the anchor that overlaps it most. With `offset`, the middle of a box is given
    as the distance from that of the anchor in widths and heights of the anchor, and its width and
    height as logarithms of their ratios to the anchor's.
    """

    def check_constants(self) -> None:
        args = self.args
        if not 0.0 <= args.criteria <= 1.0:
            raise ArgumentValueError(f"`criteria` must be from 0 to 1, got {args.criteria}.")
        if not args.anchors or len(args.anchors) % 4:
            raise ArgumentValueError(
                f"Anchors size must be divisible by 4, got {len(args.anchors)} numbers."
            )
        for name in ("means", "stds"):
            if len(getattr(args, name)) != 4:
                raise ArgumentValueError(
                    f"`{name}` must be a list of 4 values, got {len(getattr(args, name))}."
                )
        if 0.0 in args.stds:
            raise ArgumentValueError("`stds` values must not be 0.")

    def infer(self, boxes: Spec, labels: Spec) -> tuple[Spec, Spec]:
        args = self.args
        anchors = np.array(args.anchors, np.float32).reshape(-1, 4)
        self.anchors = np.ascontiguousarray(anchors)
        middles = (anchors[:, :2] + anchors[:, 2:]) * np.float32(0.5)
        self.encoded = np.hstack([middles, anchors[:, 2:] - anchors[:, :2]])
        self.means = np.array(args.means, np.float32)
        self.stds = np.array(args.stds, np.float32)
        return Spec(DALIDataType.FLOAT, 2), Spec(DALIDataType.INT32, 1)

    def plan(self, c: PlanContext, boxes: Samples, labels: Samples) -> Planned:
        sizes, counts = volumes(boxes.shapes), volumes(labels.shapes)
        wrong = np.flatnonzero((sizes % 4 > 0) | (sizes // 4 != counts))
        if len(wrong):
            raise ShapeError(
                f"There must be four numbers and a label for each box; got {sizes[wrong[0]]} "
                f"numbers and {counts[wrong[0]]} labels."
            )
        count = len(self.anchors)
        shapes = np.full((c.size, 2), (count, 4), np.int64), np.full((c.size, 1), count, np.int64)
        return Planned(shapes)

    def cpu(
        self, c: SampleContext, boxes: np.ndarray, labels: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        count = len(self.anchors)
        encoded, classes = c.empty((count, 4), np.float32), c.empty((count,), np.int32, 1)
        args = self.args
        _cpu.encode(
            np.ascontiguousarray(boxes).reshape(-1, 4),
            np.ascontiguousarray(labels).reshape(-1),
            self.anchors,
            self.encoded,
            np.float32(args.criteria),
            args.offset,
            np.float32(args.scale),
            self.means,
            self.stds,
            encoded,
            classes,
        )
        return encoded, classes

    def gpu(
        self, c: BatchContext, boxes: DeviceBatch, labels: DeviceBatch
    ) -> tuple[DeviceBatch, DeviceBatch]:
        shapes = plan_batch(self, c, boxes, labels).shapes
        encoded, classes = c.empty(shapes[0], np.float32), c.empty(shapes[1], np.int32, 1)
        _gpu.encode(c.queue, boxes, labels, self, encoded, classes)
        return encoded, classes
