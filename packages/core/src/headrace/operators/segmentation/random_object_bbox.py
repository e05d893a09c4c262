"""`segmentation.random_object_bbox`."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from headrace.errors import (
    ArgumentChoiceError,
    ArgumentValueError,
    MisusedArgumentError,
    ShapeError,
)
from headrace.kernels.cpu import blobs as _blobs
from headrace.kernels.cpu.random import draw_below
from headrace.operators.support.argument_types import (
    BoolArg,
    FloatArg,
    FloatListArg,
    IntArg,
    IntListArg,
    StringArg,
)
from headrace.operators.support.operator import SampleContext, SampleOperator, operator
from headrace.operators.support.schema import Arg, Input, Spec
from headrace.types import DALIDataType

_FORMATS = ("anchor_shape", "start_end", "box")
_LOWEST, _HIGHEST = np.iinfo(np.int32).min, np.iinfo(np.int32).max
_MOST_AXES = 6
_DTYPES = ("BOOL", "UINT8", "INT8", "UINT16", "INT16", "UINT32", "INT32")


def _num_outputs(args: dict[str, Any]) -> int:
    return (1 if args["format"] == "box" else 2) + bool(args["output_class"])


@operator(
    "segmentation.random_object_bbox",
    inputs=Input(
        "mask",
        f"Labels, with up to {_MOST_AXES} axes.",
        dtypes=tuple(DALIDataType[name] for name in _DTYPES),
    ),
    args=(
        Arg(
            "background",
            IntArg,
            None,
            "The label of what is no object. If not given, 0, or if that is one of `classes`, the "
            "number below the lowest of them.",
            per_sample=True,
        ),
        Arg(
            "classes",
            IntListArg,
            None,
            "The labels of objects; all but `background` if not given.",
            per_sample=True,
            shape_of="(classes,)",
        ),
        Arg(
            "class_weights",
            FloatListArg,
            None,
            "How likely each of `classes` is, in relation to the others; without `classes`, of the "
            "labels from 0 on that are not `background`. All are as likely if not given.",
            per_sample=True,
            shape_of="(classes,)",
        ),
        Arg(
            "foreground_prob",
            FloatArg,
            1.0,
            "Probability with which an object is drawn, and not the whole mask.",
            per_sample=True,
        ),
        Arg(
            "threshold",
            IntListArg,
            None,
            "Least extents of boxes, one for each axis or one for all.",
            per_sample=True,
            shape_of="(axes,)",
        ),
        Arg("k_largest", IntArg, None, "Draw from that many boxes of largest volume only."),
        Arg(
            "ignore_class",
            BoolArg,
            False,
            "Draw one of all objects; otherwise a label first, and one of its objects then.",
        ),
        Arg(
            "format",
            StringArg,
            "anchor_shape",
            'Outputs: "anchor_shape" and "start_end" give two, and "box" one of start and end.',
            choices=_FORMATS,
        ),
        Arg("output_class", BoolArg, False, "Whether the label is an output, too."),
        Arg(
            "cache_objects",
            BoolArg,
            False,
            "Keep the boxes of all masks, and look for them again only in masks that are new.",
        ),
    ),
    num_outputs=_num_outputs,
    output_docs=(
        'Where the box begins (format "box": begins and ends), int32.',
        "Its extents, or where it ends, int32.",
        "With `output_class`, its label, int32; that of the background if it is the whole mask.",
    ),
    random=True,
    devices=("cpu",),
)
class RandomObjectBBox(SampleOperator):
    """Draws an object of a segmentation mask, and tells its bounding box.

    An object is made of elements with the same label that touch along an axis. Where there is none
    that is allowed, the box is that of the whole mask.

    Examples
    --------
    >>> start, shape = fn.segmentation.random_object_bbox(mask, foreground_prob=0.7, k_largest=3)
    >>> window = fn.slice(image, start, shape, axes=(0, 1))
    """

    def check_constants(self) -> None:
        args = self.args
        classes = self.given("classes") or self.given("class_weights") or args.output_class
        if args.ignore_class and classes:
            raise MisusedArgumentError(
                "Class-related arguments ``classes``, ``class_weights`` and ``output_class`` "
                "cannot be used when ``ignore_class`` is True."
            )
        if args.k_largest is not None and args.k_largest < 1:
            raise ArgumentChoiceError(f"``k_largest`` must be at least 1; got {args.k_largest}.")

    def infer(self, mask: Spec) -> tuple[Spec, ...]:
        args = self.args
        if mask.ndim is not None and not 1 <= mask.ndim <= _MOST_AXES:
            raise ShapeError(
                f"Unsupported number of dimensions {mask.ndim}; a mask has 1 to {_MOST_AXES}."
            )
        self._boxes: dict[bytes, tuple[np.ndarray, np.ndarray]] = {}
        """Objects of masks by digest; threads put whole entries into it, and take none out."""
        found = [Spec(DALIDataType.INT32, 1)] * (1 if args.format == "box" else 2)
        if args.output_class:
            found.append(Spec(DALIDataType.INT32, 0))
        return tuple(found)

    def cpu(self, c: SampleContext, mask: np.ndarray) -> tuple[np.ndarray, ...]:
        args = c.args
        classes = None if args.classes is None else list(args.classes)
        weights = args.class_weights
        background = _background(args.background, classes)
        if classes is not None and weights is not None and len(classes) != len(weights):
            raise ShapeError(
                "If both ``classes`` and ``class_weights`` are provided, their shapes must match. "
                f"Got: classes.shape = {{{len(classes)}}} weights.shape = {{{len(weights)}}}."
            )
        ndim = mask.ndim
        box, label = np.array([0] * ndim + list(mask.shape), np.int32), background
        if _unit(c, 0) < args.foreground_prob:
            labels, boxes = self._objects(mask, background)
            kept = _large_enough(boxes, args.threshold, ndim)
            taken = 2
            if not self.args.ignore_class:
                left = labels
                while len(left):  # a label whose objects are all too small is drawn once
                    label = _drawn_label(left, background, classes, weights, _unit(c, taken))
                    taken += 2
                    if label == background or kept[labels == label].any():
                        break
                    left = left[left != label]
                else:
                    label = background
                kept &= (labels == label) & (label != background)
            boxes = boxes[kept]
            if len(boxes):
                largest = self.args.k_largest
                if largest is not None and largest < len(boxes):  # else they keep their order
                    extents = (boxes[:, ndim:] - boxes[:, :ndim]).astype(np.float64)
                    order = np.argsort(-extents.prod(axis=1), kind="stable")
                    boxes = boxes[order[:largest]]
                box = boxes[_drawn(c, taken, len(boxes))[-1]]
        begin, end = box[:ndim], box[ndim:]
        results: list[Any] = {
            "anchor_shape": [begin, end - begin],
            "start_end": [begin, end],
            "box": [box],
        }[self.args.format]
        if self.args.output_class:
            results.append(np.int32(label))
        outputs = []
        for k, values in enumerate(results):
            outputs.append(c.empty(np.shape(values), np.int32, k))
            outputs[-1][...] = values
        return tuple(outputs)

    def _objects(self, mask: np.ndarray, background: int) -> tuple[np.ndarray, np.ndarray]:
        """Labels and boxes of all objects."""
        labels = np.ascontiguousarray(mask)
        labels = labels.astype(np.int32, copy=False).reshape(-1)
        shape = np.array(mask.shape, np.int64)
        if not self.args.cache_objects:
            return _blobs.find_blobs(labels, shape, background)  # type: ignore[no-any-return]
        digest = hashlib.blake2b(labels.data, digest_size=32)
        digest.update(repr((background, mask.shape)).encode())
        key = digest.digest()
        found = self._boxes.get(key)
        if found is None:
            found = self._boxes[key] = _blobs.find_blobs(labels, shape, background)
        return found


def _drawn(c: SampleContext, words: int, bound: int) -> np.ndarray:
    """The first words of a sample, and the number below `bound` that follows them."""
    bounds = np.array([[*[1 << 32] * words, bound]])
    return draw_below(bounds, c.seed, c.iteration, [c.index])[0]  # type: ignore[no-any-return]


def _unit(c: SampleContext, words: int) -> float:
    """The number from [0, 1) that follows the first words of a sample."""
    low, high = _drawn(c, words + 1, 1 << 32)[-2:].tolist()
    return min((high + low * 2.0**-32) * 2.0**-32, 1 - 2.0**-53)  # type: ignore[no-any-return]


def _background(given: int | None, classes: list[int] | None) -> int:
    """The label of what is no object."""
    if given is not None:
        if classes is not None and given in classes:
            raise ArgumentValueError(
                f"Class label {given} coincides with background label. Give another `background`, "
                "or take it out of `classes`."
            )
        return given
    if classes is None or 0 not in classes:
        return 0
    label = min(classes) - 1
    if label < _LOWEST:
        label = _HIGHEST
        while label in classes:
            label -= 1
    return label


def _large_enough(boxes: np.ndarray, threshold: Any, ndim: int) -> np.ndarray:
    """True for objects that are no smaller than `threshold` along any axis."""
    if threshold is None:
        return np.ones(len(boxes), np.bool_)
    if len(threshold) not in (1, ndim):
        raise ShapeError(
            f'Argument "threshold" expected shape {ndim} but got {len(threshold)} values, which '
            "can't be interpreted as the expected shape. Give one for each axis, or one for all."
        )
    return (boxes[:, ndim:] - boxes[:, :ndim] >= np.array(threshold)).all(axis=1)  # type: ignore[no-any-return]


def _drawn_label(
    labels: np.ndarray, background: int, classes: list[int] | None, weights: Any, unit: float
) -> int:
    """One of the labels that there are, by a number from [0, 1); `background` if there is none."""
    there = np.unique(labels).tolist()
    if classes is None and weights is None:
        return there[int(unit * len(there))] if there else background
    if classes is None:
        numbers = (k for k in range(len(weights) + 1) if k != background)
        classes = [next(numbers) for _ in weights]
    if weights is None:
        weights = [1.0] * len(classes)
    limits = np.cumsum(
        [max(w, 0.0) if k in there else 0.0 for k, w in zip(classes, weights, strict=True)]
    )
    if not len(limits) or not limits[-1] > 0:
        return background
    return classes[int(np.searchsorted(limits, unit * limits[-1], side="right"))]
