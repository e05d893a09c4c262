"""`bbox_rotate`."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.errors import (
    ArgumentValueError,
    LayoutError,
    MisusedArgumentError,
    ShapeError,
)
from headrace.kernels.cpu import bbox_rows as _rows
from headrace.kernels.plan import rotations as _rotations
from headrace.operators.support.argument_types import (
    BoolArg,
    FloatArg,
    FloatListArg,
    IntListArg,
    LayoutArg,
    StringArg,
)
from headrace.operators.support.arguments import given
from headrace.operators.support.operator import ChunkContext, SampleOperator, operator
from headrace.operators.support.schema import REQUIRED, Arg, Input, Spec
from headrace.tensors.gpu.batch import volumes
from headrace.tensors.rows import Rows
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

    chunked = True

    def cpu_chunk(self, c: ChunkContext, boxes: Rows, labels: Rows | None = None) -> Any:
        args = self.args
        _check(boxes.shapes, labels)
        counts = boxes.shapes[:, 0]
        firsts = np.zeros(len(counts) + 1, np.int64)
        np.cumsum(counts, out=firsts[1:])
        angles = np.array(c.values("angle"), np.float64)
        extents, canvases = self._extents(c, angles)
        turn = np.radians(angles).astype(np.float32)
        # A row for each box from here on.
        image, sheet = (
            np.repeat(a.astype(np.float32), counts, axis=0) for a in (extents, canvases)
        )
        cos, sin = (np.repeat(a, counts)[:, np.newaxis] for a in (np.cos(turn), np.sin(turn)))
        corners = np.concatenate(boxes.rows)
        begin, size = corners[:, :2], corners[:, 2:]
        if args.bbox_layout == "xyXY":
            size = size - begin
        if args.bbox_normalized:
            begin, size = begin * image, size * image
        middle = begin + size / 2 - image / 2
        x, y = middle[:, :1], middle[:, 1:].astype(np.float64)  # rounded once
        turned = np.hstack([x * cos + y * sin, y * cos - x * sin]).astype(np.float32)
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
        if args.bbox_layout == "xyWH":
            end = end - begin
        if args.bbox_normalized:
            begin, end = begin / sheet, end / sheet
        found = Rows.of_memory(np.hstack([begin, end]).reshape(-1), firsts[:-1] * 4, boxes.shapes)
        outputs: list[Rows] = []
        for rows in given(found, labels):
            shapes = rows.shapes.copy()
            widths = volumes(shapes[:, 1:])
            shapes[:, 0] = _rows.counts(kept, firsts)
            out = c.empty(shapes, rows.dtype, len(outputs))
            _rows.keep_rows(rows.addresses, widths, firsts, kept, out.flat, out.begins)
            outputs.append(out)
        return tuple(outputs)

    def _extents(self, c: ChunkContext, angles: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Width and height of each image, and of the rotated one, int64 ``(samples, 2)``."""
        layout, asked = self.args.shape_layout, c.values("input_shape")
        for shape in asked:
            if len(shape) < len(layout):
                raise ShapeError(
                    f"`input_shape` has {len(shape)} numbers, fewer than `shape_layout`, "
                    f'"{layout}".'
                )
        width, height = layout.index("W"), layout.index("H")
        images = np.array([(shape[height], shape[width]) for shape in asked], np.int64)
        extents = images[:, ::-1]
        if self.args.keep_size:
            return extents, extents
        canvases, odd = np.empty((2, len(images), 2), np.int64)
        if not _rotations.canvases_of_images(images, angles, _rotations.SLACK, canvases, odd):
            wrong = angles[~np.isfinite(angles)][0]
            raise ArgumentValueError(f"`angle` must be a finite number, got {wrong}.")
        _rotations.share_canvases(canvases, odd, np.arange(len(images)))
        for k, size in enumerate(c.values("size") if self.given("size") else ()):
            if len(size) not in (0, 2):
                raise ShapeError(f"`size` must be exactly two elements (HW), got {len(size)}.")
            canvases[k] = size or canvases[k]
        return extents, canvases[:, ::-1]


def _check(shapes: np.ndarray, labels: Rows | None) -> None:
    """Raise if boxes of these shapes, or their labels, are none."""
    if shapes.shape[1] != 2 or (shapes[:, 1] != 4).any():
        raise ShapeError(f"Boxes should have the shape (N, 4), got {tuple(shapes[0].tolist())}.")
    if labels is None:
        return
    found = labels.shapes
    if found.shape[1] not in (1, 2) or (found[:, 1:] != 1).any():
        raise ShapeError(f"Labels should be [N] or [N, 1], got {tuple(found[0].tolist())}.")
    wrong = np.flatnonzero(found[:, 0] != shapes[:, 0])
    if len(wrong):
        raise ShapeError(
            f"Number of labels must match number of boxes. Got: {found[wrong[0], 0]} and "
            f"{shapes[wrong[0], 0]}."
        )
