"""`bbox_rotate`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from headrace.errors import (
    ArgumentValueError,
    LayoutError,
    MisusedArgumentError,
    ShapeError,
)
from headrace.kernels.plan import rotations as _rotations
from headrace.operators.support.argument_types import (
    BoolArg,
    FloatArg,
    FloatListArg,
    IntListArg,
    LayoutArg,
    StringArg,
)
from headrace.operators.support.operator import SampleContext, SampleOperator, operator
from headrace.operators.support.schema import REQUIRED, Arg, Input, Spec
from headrace.types import DALIDataType

_MODES = {"expand": 0.0, "halfway": 0.5, "fixed": 1.0}
"""Distances between the extents of a box and those of its rotated outline, from the latter to the
former.
"""


@operator(
    "bbox_rotate",
    inputs=(
        Input("boxes", "Boxes, ``(boxes, 4)``.", dtypes=(DALIDataType.FLOAT,)),
        Input(
            "labels",
            "Their labels, ``(boxes,)`` or ``(boxes, 1)``.",
            dtypes=(DALIDataType.INT32,),
            optional=True,
        ),
    ),
    args=(
        Arg("angle", FloatArg, REQUIRED, "As of `rotate`, in degrees.", per_sample=True),
        Arg(
            "input_shape",
            IntListArg,
            REQUIRED,
            "Shape of the image, in the order of `shape_layout`; more numbers may follow.",
            per_sample=True,
            shape_of="(axes,)",
        ),
        Arg("shape_layout", LayoutArg, "HW", "Meaning of the numbers of `input_shape`."),
        Arg(
            *("bbox_layout", LayoutArg, "xyXY", "Meaning of the numbers of a box."),
            choices=("xyXY", "xyWH"),
            said="Unknown bbox_layout: {}. Supported layouts are: xyWH, xyXY",
        ),
        Arg(
            "bbox_normalized",
            BoolArg,
            True,
            "Whether boxes are in shares of the image, before and after; in pixels otherwise.",
        ),
        Arg("keep_size", BoolArg, False, "As of `rotate`: the rotated image has the old extents."),
        Arg(
            "size",
            FloatListArg,
            None,
            "As of `rotate`: height and width of the rotated image.",
            per_sample=True,
            shape_of="(2,)",
        ),
        Arg(
            "mode",
            StringArg,
            "expand",
            'Extents of a rotated box: those of its outline ("expand"), its own ("fixed", with '
            'width and height exchanged where it lies down), or what is between ("halfway").',
            choices=tuple(_MODES),
            said=f"Unknown mode: {{}}. Supported modes are: {', '.join(_MODES)}",
        ),
        Arg(
            "remove_threshold",
            FloatArg,
            0.1,
            "A box is left out if less than this share of it stays on the image.",
        ),
    ),
    optional_adds_output=True,
    output_docs=("The rotated boxes, clipped to the image.", "Their labels."),
    devices=("cpu",),
)
class BBoxRotate(SampleOperator):
    """Rotates boxes as `rotate` does the image that they are on.

    Examples
    --------
    >>> boxes, labels = fn.bbox_rotate(boxes, labels, angle=angle, input_shape=images.shape())
    >>> images = fn.rotate(images, angle=angle)
    """

    def check_constants(self) -> None:
        args = self.args
        if "H" not in args.shape_layout or "W" not in args.shape_layout:
            raise LayoutError(
                f"`shape_layout` does not contain 'W' and/or 'H': it is \"{args.shape_layout}\"."
            )
        if not 0 <= args.remove_threshold < 1:
            raise ArgumentValueError(
                "`remove_threshold` is out of range: it must be at least 0 and less than 1, got "
                f"{args.remove_threshold}."
            )
        if args.keep_size and self.given("size"):
            raise MisusedArgumentError("`keep_size` is mutually exclusive with `size`.")

    def infer(self, boxes: Spec, labels: Spec | None = None) -> tuple[Spec, ...]:
        return (boxes,) if labels is None else (boxes, labels)

    def cpu(self, c: SampleContext, boxes: np.ndarray, labels: np.ndarray | None = None) -> Any:
        args = self.args
        if boxes.ndim != 2 or boxes.shape[1] != 4:
            raise ShapeError(f"Boxes should have the shape (N, 4), got {boxes.shape}.")
        if labels is not None:
            if labels.ndim not in (1, 2) or labels.shape[1:] not in ((), (1,)):
                raise ShapeError(f"Labels should be [N] or [N, 1], got {labels.shape}.")
            if len(labels) != len(boxes):
                raise ShapeError(
                    "Number of labels must match number of boxes. Got: "
                    f"{len(labels)} and {len(boxes)}."
                )
        extents, canvas = self._extents(c)
        image, sheet = np.array(extents, np.float32), np.array(canvas, np.float32)
        begin, size = boxes[:, :2], boxes[:, 2:]
        if args.bbox_layout == "xyXY":
            size = size - begin
        if args.bbox_normalized:
            begin, size = begin * image, size * image
        radians = np.float32(math.radians(c.args.angle))
        cos, sin = np.cos(radians), np.sin(radians)
        middle = begin + size / 2 - image / 2
        turned = middle @ np.array([[cos, -sin], [sin, cos]], np.float32)
        outline = size * abs(cos) + size[:, ::-1] * abs(sin)
        # At 45 degrees the outline is a square, which counts as lying: so a standing box is laid.
        stands, outline_stands = (each[:, 1] > each[:, 0] for each in (size, outline))
        own = np.where((stands != outline_stands)[:, np.newaxis], size[:, ::-1], size)
        share = np.float32(_MODES[args.mode])
        half = (outline + (own - outline) * share) / 2
        middle = turned + sheet / 2
        begin, end = middle - half, middle + half
        area = (end - begin).prod(axis=1)
        begin, end = np.clip(begin, 0, sheet), np.clip(end, 0, sheet)
        left = (end - begin).prod(axis=1)
        kept = left >= area * np.float32(args.remove_threshold)
        kept &= (left if args.remove_threshold else area) > 0
        begin, end = begin[kept], end[kept]
        if args.bbox_layout == "xyWH":
            end = end - begin
        if args.bbox_normalized:
            begin, end = begin / sheet, end / sheet
        out = c.empty((len(begin), 4), np.float32)
        out[:, :2], out[:, 2:] = begin, end
        if labels is None:
            return out
        left_labels = c.empty((len(begin), *labels.shape[1:]), np.int32, 1)
        left_labels[...] = labels[kept]
        return out, left_labels

    def _extents(self, c: SampleContext) -> tuple[list[int], list[int]]:
        """Width and height of the image, and of the rotated one."""
        layout, shape = self.args.shape_layout, c.args.input_shape
        if len(shape) < len(layout):
            raise ShapeError(
                f'`input_shape` has {len(shape)} numbers, fewer than `shape_layout`, "{layout}".'
            )
        extents = [int(shape[layout.index(axis)]) for axis in "WH"]
        if self.args.keep_size:
            return extents, extents
        if c.args.size is not None and len(c.args.size):
            if len(c.args.size) != 2:
                raise ShapeError(
                    f"`size` must be exactly two elements (HW), got {len(c.args.size)}."
                )
            return extents, [int(n) for n in c.args.size[::-1]]
        canvas, odd = np.empty((2, 1, 2), np.int64)
        image = np.array([extents[::-1]], np.int64)
        angle = np.array([c.args.angle])
        if not _rotations.canvases_of_images(image, angle, _rotations.SLACK, canvas, odd):
            raise ArgumentValueError(f"`angle` must be a finite number, got {c.args.angle}.")
        _rotations.share_canvases(canvas, odd, np.zeros(1, np.int64))
        return extents, canvas[0, ::-1].tolist()
