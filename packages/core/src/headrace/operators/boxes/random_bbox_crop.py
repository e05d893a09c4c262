"""`random_bbox_crop`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from headrace.errors import ArgumentValueError, MisusedArgumentError, ShapeError
from headrace.kernels.cpu import bbox_crop as _cpu
from headrace.kernels.cpu import bbox_rows as _rows
from headrace.kernels.cpu.random import units_after
from headrace.operators.support.argument_types import (
    BoolArg,
    FloatArg,
    FloatListArg,
    IntArg,
    IntListArg,
    LayoutArg,
    StringArg,
)
from headrace.operators.support.box_arguments import columns, extents, ranges
from headrace.operators.support.operator import ChunkContext, SampleOperator, operator
from headrace.operators.support.schema import Arg, Input, Spec
from headrace.tensors.gpu.batch import volumes
from headrace.tensors.rows import Rows
from headrace.tracebacks import warn_at
from headrace.types import DALIDataType

_FIRST_BLOCK, _BLOCK = 12, 64
"""Attempts that are drawn at once, for a sample, and then for those that have no window yet."""


@operator(
    "random_bbox_crop",
    inputs=(
        Input(
            "boxes",
            "Boxes as shares of the image's extents, from 0 to 1: shape (boxes, 4) or (boxes, 6).",
            dtypes=(DALIDataType.FLOAT,),
        ),
        Input(
            "labels",
            "A label for each box, shape (boxes,).",
            dtypes=(DALIDataType.INT32,),
            optional=True,
        ),
    ),
    args=(
        Arg(
            "thresholds",
            FloatListArg,
            (0.0,),
            "What boxes must reach, from 0 to 1: one of these is drawn for every `num_attempts`.",
        ),
        Arg(
            "threshold_type",
            StringArg,
            "iou",
            "What must reach it: the intersection of box and window over their union, or over the "
            "box.",
            choices=("iou", "overlap"),
        ),
        Arg(
            "all_boxes_above_threshold",
            BoolArg,
            True,
            "Whether all boxes must reach it, or one of them.",
        ),
        Arg(
            "allow_no_crop",
            BoolArg,
            True,
            "Whether not to crop is one of what is drawn, besides `thresholds`. Not with "
            "`crop_shape`.",
        ),
        Arg(
            "scaling",
            FloatListArg,
            None,
            "Smallest and largest extent of the window, as shares of the image's. (1, 1) if not "
            "given.",
        ),
        Arg(
            "aspect_ratio",
            FloatListArg,
            None,
            "Smallest and largest ratio of width to height; for volumes of x to y, x to z and y to "
            "z, or one range for all. (1, 1) if not given: the larger extent drawn is that of all.",
        ),
        Arg(
            "input_shape",
            IntListArg,
            None,
            "Extents of the image in pixels, which aspect ratios are of then.",
            per_sample=True,
            shape_of="(axes,)",
        ),
        Arg(
            "crop_shape",
            IntListArg,
            None,
            "Extents of the window in pixels, in place of `scaling` and `aspect_ratio`; then "
            "`anchor` and `shape` are in pixels, too.",
            per_sample=True,
            shape_of="(axes,)",
        ),
        Arg("shape_layout", LayoutArg, None, 'Order of these extents; "WH" or "WHD" if not given.'),
        Arg(
            "bbox_layout",
            LayoutArg,
            None,
            'What the numbers of a box are: begins (xyz), ends (XYZ) or extents (WHD). "xyXY" or '
            '"xyzXYZ" if not given.',
        ),
        Arg("ltrb", BoolArg, None, 'False: "xyWH" or "xyzWHD".', deprecated="bbox_layout"),
        Arg(
            "bbox_prune_threshold",
            FloatArg,
            None,
            "Boxes stay if this share of them is in the window; if not given, if their middle is.",
        ),
        Arg("num_attempts", IntArg, 1, "Number of windows that are tried with a threshold."),
        Arg(
            "total_num_attempts",
            IntArg,
            None,
            "How many are tried in all, before the best is taken. If not given, there is no end.",
        ),
        Arg("quiet", BoolArg, False, "Whether not to warn when the best is taken."),
        Arg(
            "output_bbox_indices",
            BoolArg,
            False,
            "Whether the numbers of the boxes that stay are an output, too.",
        ),
    ),
    num_outputs=lambda args: 3 + bool(args["output_bbox_indices"]),
    optional_adds_output=True,
    output_docs=(
        "Where the window begins, float32: x, y (and z), as `slice` takes them.",
        "Its extents, float32.",
        "The boxes that stay, as shares of the window, float32.",
        "Their labels, where there are any; and with `output_bbox_indices` their numbers, int32.",
    ),
    random=True,
    devices=("cpu",),
)
class RandomBBoxCrop(SampleOperator):
    """Draws windows of images such that boxes lie in them well enough.

    Examples
    --------
    >>> anchor, shape, boxes, labels = fn.random_bbox_crop(
    ...     boxes, labels, scaling=(0.3, 1), aspect_ratio=(0.5, 2), thresholds=(0, 0.1, 0.3, 0.5)
    ... )
    >>> images = fn.slice(images, anchor, shape)
    """

    def infer(self, boxes: Spec, labels: Spec | None = None) -> tuple[Spec, ...]:
        args = self.args
        if boxes.ndim not in (2, None):
            raise ShapeError(f"Unexpected number of dimensions of boxes: {boxes.ndim}, not 2.")
        if not args.thresholds or not all(0 <= value <= 1 for value in args.thresholds):
            raise ArgumentValueError(
                "There must be at least one of `thresholds`, each within the range [0.0, 1.0]; got "
                f"{list(args.thresholds)}."
            )
        for name in ("num_attempts", "total_num_attempts"):
            if getattr(args, name) is not None and getattr(args, name) <= 0:
                raise ArgumentValueError(f"`{name}` must be greater than zero.")
        prune = args.bbox_prune_threshold
        if prune is not None and not 0 <= prune <= 1:
            raise ArgumentValueError(
                f"`bbox_prune_threshold` must be in range [0.0, 1.0], got {prune}."
            )
        if args.ltrb is not None and args.bbox_layout is not None:
            raise MisusedArgumentError("`ltrb` was deprecated in favor of `bbox_layout`.")
        options = list(args.thresholds)
        if self.given("crop_shape"):
            if not self.given("input_shape"):
                raise MisusedArgumentError("`input_shape` must be provided with `crop_shape`.")
            for name in ("scaling", "aspect_ratio"):
                if self.given(name):
                    raise MisusedArgumentError(f"`{name}` is incompatible with `crop_shape`.")
        elif args.allow_no_crop:
            options.append(-1.0)
        self._options = np.array(options, np.float32)
        self._scaling = ranges("scaling", args.scaling, (2,))[0]
        aspects = ranges("aspect_ratio", args.aspect_ratio, (2, 6))
        self._pairs = len(aspects)
        self._aspects = np.resize(aspects, (3, 2))
        xy, xz, yz = self._aspects
        self._is_impossible = bool(
            xy[0] * yz[0] > xz[1] * 1.00001 or xy[1] * yz[1] * 1.00001 < xz[0]
        )
        outputs = [Spec(DALIDataType.FLOAT, 1), Spec(DALIDataType.FLOAT, 1), boxes]
        if labels is not None:
            outputs.append(labels)
        if args.output_bbox_indices:
            outputs.append(Spec(DALIDataType.INT32, 1))
        return tuple(outputs)

    chunked = True

    def cpu_chunk(self, c: ChunkContext, boxes: Rows, labels: Rows | None = None) -> Any:
        return self.cropped(c, boxes, labels, c.empty)

    def cropped(
        self, c: ChunkContext, boxes: Rows, labels: Rows | None, empty: Callable[..., Rows]
    ) -> tuple[Rows, ...]:
        """The outputs, in memory that ``empty(shapes, dtype, output)`` gives."""
        shapes = boxes.shapes
        count, counts = len(shapes), np.ascontiguousarray(shapes[:, 0])
        numbers = int(shapes[0, 1])
        ndim = numbers // 2
        if numbers not in (4, 6) or (shapes[:, 1] != numbers).any():
            raise ShapeError(
                f"Unexpected number of coordinates of bounding boxes: {numbers}, not 4 or 6."
            )
        if labels is not None and (labels.shapes[:, 0] != counts).any():
            raise ShapeError(f"There are {labels.shapes[0, 0]} labels for {counts[0]} boxes.")
        if ndim == 3 and self._is_impossible:
            raise ArgumentValueError(
                f"No window has all of `aspect_ratio`={list(self.args.aspect_ratio)}: for boxes of "
                "volumes, these are x to y, x to z and y to z (one range is for all three), and x "
                "to z is x to y times y to z."
            )
        if self._pairs > 1 and ndim != 3:
            raise ShapeError("`aspect_ratio` of 6 elements is for boxes of volumes.")
        begins, ends, shaped = columns(self.args.bbox_layout, ndim, ltrb=self.args.ltrb)
        firsts = np.zeros(count + 1, np.int64)
        np.cumsum(counts, out=firsts[1:])
        given = np.empty((firsts[-1], numbers), np.float32)
        wrong = _rows.read_boxes(boxes.addresses, firsts, begins, ends, shaped, given)
        if wrong >= 0:
            sample = int(np.searchsorted(firsts, wrong, side="right")) - 1
            raise ArgumentValueError(
                f"The box {boxes[sample][wrong - firsts[sample]].tolist()} is out of bounds: it "
                "must lie between 0 and 1. What its numbers are says `bbox_layout`."
            )
        data, crop = [
            None
            if not self.given(name)
            else extents(name, self._each(c, name), self.args.shape_layout, ndim, count)
            for name in ("input_shape", "crop_shape")
        ]
        windows, kept = self._drawn(c, given, firsts, data, crop, ndim)
        low, size = windows[:, :ndim], windows[:, ndim:]
        if crop is not None:
            assert data is not None  # `infer` asks for it
            low, size = np.rint(low * data), crop
        outputs: list[Rows] = []
        for values in (low, size):
            outputs.append(empty(np.full((count, 1), ndim), np.float32, len(outputs)))
            _rows.scatter_rows(values, outputs[-1].flat, outputs[-1].begins)
        left = _rows.counts(kept, firsts)
        out = empty(np.column_stack([left, shapes[:, 1]]), np.float32, 2)
        _rows.crop_boxes(given, firsts, kept, windows, begins, ends, shaped, out.flat, out.begins)
        outputs.append(out)
        if labels is not None:
            shapes = labels.shapes.copy()
            shapes[:, 0] = left
            out = empty(shapes, np.int32, 3)
            widths = volumes(labels.shapes[:, 1:])
            _rows.keep_rows(labels.addresses, widths, firsts, kept, out.flat, out.begins)
            outputs.append(out)
        if self.args.output_bbox_indices:
            out = empty(left[:, None], np.int32, len(outputs))
            _rows.keep_numbers(firsts, kept, out.flat, out.begins)
            outputs.append(out)
        return tuple(outputs)

    def _each(self, c: ChunkContext, name: str) -> list[Any]:
        """Argument `name` of each sample, or its constant."""
        return c.values(name) if name in self.tensor_args else [getattr(self.args, name)]

    def _drawn(
        self,
        c: ChunkContext,
        boxes: np.ndarray,
        firsts: np.ndarray,
        data: np.ndarray | None,
        crop: np.ndarray | None,
        ndim: int,
    ) -> tuple[np.ndarray, np.ndarray]:
        """The windows, begins and extents, and which boxes stay with them."""
        args = self.args
        numbers, count = 1 + 2 * ndim, len(firsts) - 1
        total = -1 if args.total_num_attempts is None else args.total_num_attempts
        prune = -1.0 if args.bbox_prune_threshold is None else args.bbox_prune_threshold
        states = np.zeros((count, 3 + 2 * ndim), np.float32)
        states[:, 1] = -1
        windows = np.zeros((count, 2 * ndim), np.float32)
        kept, found = np.zeros(len(boxes), np.bool_), np.zeros(count, np.int64)
        indices, taken = np.array(c.indices, np.int64), np.zeros(count, np.int64)
        first, block, left = 0, _FIRST_BLOCK, np.arange(count)
        # Copies: the kernel is compiled for arrays of one kind.
        extents_of_data = np.empty((count, ndim), np.float32)
        extents_of_data[:] = 1 if data is None else data
        extents_of_crop = np.empty((count, ndim), np.float32)
        extents_of_crop[:] = 0 if crop is None else crop
        while len(left):
            block = -(-block // args.num_attempts) * args.num_attempts
            units = units_after(c.seed, c.iteration, indices[left], taken[left], block * numbers)
            _cpu.draw_windows(
                left,
                boxes,
                firsts,
                units,
                first,
                args.num_attempts,
                total,
                self._options,
                states,
                self._scaling,
                self._aspects,
                extents_of_data,
                extents_of_crop,
                args.threshold_type == "overlap",
                args.all_boxes_above_threshold,
                prune,
                windows,
                kept,
                found,
            )
            taken[left] += states[left, -1].astype(np.int64)
            first, left = first + block, np.flatnonzero(found == _cpu.LEFT)
            block = _BLOCK
        if not args.quiet and (found == _cpu.EXHAUSTED).any():
            warn_at(
                self.user_line,
                f"Could not find a valid cropping window in {total} attempts; the best one is "
                "taken. `quiet=True` suppresses this warning.",
            )
        return windows, kept
