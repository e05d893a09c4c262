"""`random_bbox_crop`."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from penstock.errors import ArgumentValueError, LayoutError, MisusedArgumentError, ShapeError
from penstock.kernels.cpu import bbox_crop as _cpu
from penstock.kernels.cpu.philox_state import is_of_pipeline
from penstock.kernels.cpu.random import sample_uniforms, sample_words
from penstock.operators.support.argument_types import (
    BoolArg,
    FloatArg,
    FloatListArg,
    IntArg,
    IntListArg,
    LayoutArg,
    StringArg,
)
from penstock.operators.support.operator import SampleContext, SampleOperator, operator
from penstock.operators.support.schema import Arg, Input, Spec
from penstock.types import DALIDataType

_BLOCK = 32
"""Attempts that are drawn at a time."""


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
        Arg("num_attempts", IntArg, 1, "How many windows are tried with a threshold."),
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
        if args.threshold_type not in ("iou", "overlap"):
            raise ArgumentValueError(
                f'Not supported `threshold_type`: "{args.threshold_type}". It may be "iou" or '
                '"overlap".'
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
        self._scaling = _range("scaling", args.scaling, (2,))[0]
        aspects = _range("aspect_ratio", args.aspect_ratio, (2, 6))
        self._pairs = len(aspects)
        self._aspects = np.resize(aspects, (3, 2))
        outputs = [Spec(DALIDataType.FLOAT, 1), Spec(DALIDataType.FLOAT, 1), boxes]
        if labels is not None:
            outputs.append(labels)
        if args.output_bbox_indices:
            outputs.append(Spec(DALIDataType.INT32, 1))
        return tuple(outputs)

    def _columns(self, ndim: int) -> tuple[list[int], list[int], bool]:
        """Which numbers of a box are where it begins and ends, and whether the latter extents."""
        layout = self.args.bbox_layout
        axes, ends, extents = "xyz"[:ndim], "XYZ"[:ndim], "WHD"[:ndim]
        if layout is None:
            layout = axes + (extents if self.args.ltrb is False else ends)
        if sorted(layout) not in (sorted(axes + ends), sorted(axes + extents)):
            raise LayoutError(
                f'`bbox_layout` should be a permutation of "{axes + ends}" or "{axes + extents}", '
                f'got "{layout}".'
            )
        shaped = "W" in layout
        last = extents if shaped else ends
        return [layout.index(a) for a in axes], [layout.index(a) for a in last], shaped

    def _extents(self, c: SampleContext, name: str, ndim: int) -> np.ndarray | None:
        """Argument `name` as float32 ``(ndim,)``, in the order x, y, z; `None` if not given."""
        found = getattr(c.args if name in self.tensor_args else self.args, name)
        if found is None:
            return None
        order = self.args.shape_layout or "WHD"[:ndim]
        if sorted(order) != sorted("WHD"[:ndim]):
            raise LayoutError(
                f'`shape_layout` should be a permutation of "{"WHD"[:ndim]}", got "{order}".'
            )
        if len(found) != ndim:
            raise ShapeError(f"`{name}` must have {ndim} elements, got {len(found)}.")
        if min(found) <= 0:
            raise ArgumentValueError(f"`{name}` must be positive, got {found}.")
        return np.array([found[order.index(a)] for a in "WHD"[:ndim]], np.float32)

    def cpu(self, c: SampleContext, boxes: np.ndarray, labels: Any = None) -> tuple[Any, ...]:
        ndim = boxes.shape[1] // 2
        if boxes.shape[1] not in (4, 6):
            raise ShapeError(
                f"Unexpected number of coordinates of bounding boxes: {boxes.shape[1]}, not 4 or 6."
            )
        if labels is not None and len(labels) != len(boxes):
            raise ShapeError(f"There are {len(labels)} labels for {len(boxes)} boxes.")
        if self._pairs > 1 and ndim != 3:
            raise ShapeError("`aspect_ratio` of 6 elements is for boxes of volumes.")
        begins, ends, shaped = self._columns(ndim)
        given = np.empty((len(boxes), 2 * ndim), np.float32)
        given[:, :ndim], given[:, ndim:] = boxes[:, begins], boxes[:, ends]
        if shaped:
            given[:, ndim:] += given[:, :ndim]
        slack = np.float32(1e-6)  # of what has been divided and added
        wrong = (given[:, :ndim] < 0).any(axis=1) | (given[:, ndim:] > 1 + slack).any(axis=1)
        if wrong.any():
            raise ArgumentValueError(
                f"The box {boxes[wrong.argmax()].tolist()} is out of bounds: it must lie between 0 "
                "and 1. What its numbers are says `bbox_layout`."
            )
        data, crop = self._extents(c, "input_shape", ndim), self._extents(c, "crop_shape", ndim)
        window, kept = self._drawn(c, given, data, crop, ndim)
        low, size = window[:ndim], window[ndim:]
        own = given[kept]
        if own.size:
            parts = own.reshape(-1, 2, ndim)  # begins and ends
            parts -= low
            parts /= size
            np.maximum(parts, 0, out=parts)
            np.minimum(parts, 1, out=parts)
        out = np.empty((len(own), 2 * ndim), np.float32)
        out[:, begins] = own[:, :ndim]
        out[:, ends] = own[:, ndim:] - own[:, :ndim] if shaped else own[:, ndim:]
        if crop is not None:
            low, size = np.rint(low * data), crop
        outputs = [low, size, out]
        if labels is not None:
            outputs.append(labels[kept])
        if self.args.output_bbox_indices:
            outputs.append(np.flatnonzero(kept).astype(np.int32))
        return tuple(outputs)

    def _drawn(
        self,
        c: SampleContext,
        boxes: np.ndarray,
        data: np.ndarray | None,
        crop: np.ndarray | None,
        ndim: int,
    ) -> tuple[np.ndarray, np.ndarray]:
        """The window, begins and extents, and which boxes stay with it."""
        args = self.args
        numbers = 1 + 2 * ndim
        total = -1 if args.total_num_attempts is None else args.total_num_attempts
        prune = -1.0 if args.bbox_prune_threshold is None else args.bbox_prune_threshold
        state = np.zeros(3 + 2 * ndim, np.float32)
        state[1] = -1
        window, kept = np.zeros(2 * ndim, np.float32), np.zeros(len(boxes), np.bool_)
        first, taken, found = 0, 0, _cpu.LEFT
        packed = is_of_pipeline(c.seed)
        block = _BLOCK if not packed else -(-_BLOCK // args.num_attempts) * args.num_attempts
        while found == _cpu.LEFT:
            count = block * numbers
            if packed:
                units = sample_words(c.seed, c.iteration, c.index, count, taken) * 2.0**-32
            else:
                units = sample_uniforms(c.seed, c.iteration, c.index, count, first * numbers)
            found = _cpu.draw_window(
                boxes,
                units,
                packed,
                first,
                args.num_attempts,
                total,
                self._options,
                state,
                self._scaling,
                self._aspects,
                np.ones(ndim, np.float32) if data is None else data,
                np.zeros(ndim, np.float32) if crop is None else crop,
                args.threshold_type == "overlap",
                args.all_boxes_above_threshold,
                prune,
                window,
                kept,
            )
            first += block
            taken += int(state[-1])
        if found == _cpu.EXHAUSTED and not args.quiet:
            warnings.warn(
                f"Could not find a valid cropping window in {total} attempts; the best one is "
                "taken. `quiet=True` suppresses this warning.",
                UserWarning,
                stacklevel=2,
            )
        return window, kept


def _range(name: str, values: Any, counts: tuple[int, ...]) -> np.ndarray:
    """Ranges, smallest and largest, float32 ``(ranges, 2)``; (1, 1) where nothing is given."""
    if values is None:
        return np.ones((1, 2), np.float32)
    if len(values) not in counts:
        raise ArgumentValueError(
            f"`{name}` must be a range, [min, max], or three of them for volumes; got "
            f"{len(values)} values."
        )
    ranges = np.array(values, np.float32).reshape(-1, 2)
    if not ((ranges >= 0).all() and (ranges[:, 0] <= ranges[:, 1]).all()):
        raise ArgumentValueError(
            f"`{name}` range must be positive and min <= max, got {list(values)}."
        )
    return ranges
