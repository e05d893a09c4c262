"""Boxes, points and masks over pictures, and the legend of their classes."""

from __future__ import annotations

import colorsys
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from headrace.display.outputs import DisplayOutput, array_of, outputs_of
from headrace.errors import ArgumentTypeError, ArgumentValueError, ShapeError
from headrace.kernels.cpu.opencv import cv2
from headrace.tensors.base import TensorListBase

Classes = Sequence[str] | Mapping[int, str]

BOX_LAYOUTS = ("xyXY", "xyWH")
_COLORS = (
    (230, 25, 75),
    (60, 180, 75),
    (67, 99, 216),
    (245, 130, 49),
    (145, 30, 180),
    (0, 165, 165),
    (240, 50, 230),
    (154, 99, 36),
    (128, 128, 0),
    (0, 0, 117),
)
"""Ten that are told apart on photographs."""
_GOLDEN = 0.618033988749895
_OPACITY = 0.55


def color_of(number: int) -> tuple[int, int, int]:
    """The colour of a class, RGB, the same in every picture."""
    if 0 <= number < len(_COLORS):
        return _COLORS[number]
    hue = (number * _GOLDEN) % 1
    red, green, blue = colorsys.hsv_to_rgb(hue, 0.85, 0.65 + 0.25 * (number % 2))
    return int(255 * red), int(255 * green), int(255 * blue)


class SampleMarks(NamedTuple):
    """Boxes, points and masks of one sample."""

    boxes: np.ndarray | None = None
    """``(boxes, 4)`` or ``(frames, boxes, 4)``: left, top, right, bottom."""
    points: np.ndarray | None = None
    """``(..., 2)``, x and y, or ``(..., 3)`` with a third number that is 0 for what is hidden."""
    masks: np.ndarray | None = None
    """Numbers of classes ``([frames,] height, width)``, or bool ``(objects, height, width)``."""
    labels: list[Any] | None = None
    """Class, or text, of each box."""
    number: int = 0

    def drawn_on(
        self, tile: np.ndarray, shape: tuple[int, ...], frame: int, names: Names
    ) -> np.ndarray:
        """A copy of a picture, which had this height and width before it was fitted."""
        tile = tile.copy()
        height, width = shape
        if self.masks is not None:
            self._blend(tile, frame, names)
        scale = np.array([tile.shape[1] / max(width, 1), tile.shape[0] / max(height, 1)])
        extents = np.array([width, height])
        if self.points is not None and self.points.size:
            self._draw_points(tile, scale, extents)
        if self.boxes is not None:
            self._draw_boxes(tile, scale, extents, frame, names)
        return tile

    def _blend(self, tile: np.ndarray, frame: int, names: Names) -> None:
        masks = self.masks
        assert masks is not None
        if masks.ndim == 3 and masks.dtype == np.bool_:
            layers = [(names.use(self._label(k), k), mask) for k, mask in enumerate(masks)]
        else:
            one = masks[min(frame, len(masks) - 1)] if masks.ndim == 3 else masks
            kinds = [int(value) for value in np.unique(one) if value != 0]
            layers = [(names.use(kind, kind), one == kind) for kind in kinds]
        for number, mask in layers:
            if not mask.size:
                continue
            rows = np.arange(tile.shape[0]) * mask.shape[0] // tile.shape[0]
            columns = np.arange(tile.shape[1]) * mask.shape[1] // tile.shape[1]
            inside = mask[rows][:, columns]
            mixed = tile[inside] * (1 - _OPACITY) + np.array(color_of(number)) * _OPACITY
            tile[inside] = np.rint(mixed)

    def _draw_boxes(
        self, tile: np.ndarray, scale: np.ndarray, extents: np.ndarray, frame: int, names: Names
    ) -> None:
        boxes = self.boxes
        assert boxes is not None
        if boxes.ndim == 3:
            boxes = boxes[min(frame, len(boxes) - 1)] if len(boxes) else boxes.reshape(0, 4)
        corners = _in_pixels(boxes.reshape(-1, 2, 2), extents) * scale
        for k, box in enumerate(corners):
            if not np.isfinite(box).all():
                continue
            label = self._label(k)
            color = color_of(names.use(label, k))
            (left, top), (right, bottom) = np.clip(np.rint(box), -9999, 9999).astype(int).tolist()
            cv2().rectangle(tile, (left, top), (right - 1, bottom - 1), color, 2)
            if label is not None:
                _tag(tile, names.text(label), left, top, color)

    def _draw_points(self, tile: np.ndarray, scale: np.ndarray, extents: np.ndarray) -> None:
        assert self.points is not None
        groups = self.points.reshape(-1, *self.points.shape[-2:])
        several = len(groups) > 1
        for k, group in enumerate(groups):
            positions = _in_pixels(group[:, :2], extents) * scale
            shown = np.isfinite(positions).all(-1)
            if group.shape[-1] == 3:
                shown &= group[:, 2] != 0
            for n, (x, y) in enumerate(positions.tolist()):
                if shown[n]:
                    place = (round(min(max(x, -9999), 9999)), round(min(max(y, -9999), 9999)))
                    cv2().circle(tile, place, 4, (255, 255, 255), -1, cv2().LINE_AA)
                    cv2().circle(tile, place, 3, color_of(k if several else n), -1, cv2().LINE_AA)

    def _label(self, k: int) -> Any:
        return None if self.labels is None or k >= len(self.labels) else self.labels[k]


class Names:
    """Names of classes, and which of them were drawn."""

    def __init__(self, classes: Classes | None) -> None:
        if isinstance(classes, str) or not isinstance(classes, (Sequence, Mapping, type(None))):
            raise ArgumentTypeError(
                f"`classes` is {classes!r}; expected a list of names, by number, or a dictionary "
                "from numbers to names."
            )
        pairs = classes.items() if isinstance(classes, Mapping) else enumerate(classes or ())
        self._names = {int(number): str(name) for number, name in pairs}
        self._texts: dict[str, int] = {name: number for number, name in self._names.items()}
        self._used: dict[int, str] = {}

    def use(self, label: Any, number: int) -> int:
        """The number that gives the colour of `label`; `number` where that is none."""
        if label is None:
            return number
        if isinstance(label, str):
            found = self._texts.setdefault(label, max(self._texts.values(), default=-1) + 1)
        else:
            found = int(label)
        self._used[found] = self.text(label)
        return found

    def text(self, label: Any) -> str:
        """Text for a class."""
        if isinstance(label, str):
            return label
        return self._names.get(int(label), str(int(label)))

    @property
    def legend(self) -> list[tuple[tuple[int, int, int], str]]:
        """Colours and names of what was drawn."""
        return [(color_of(number), text) for number, text in sorted(self._used.items())]


def _in_pixels(positions: np.ndarray, extents: np.ndarray) -> np.ndarray:
    """Positions that are all within 0 .. 1 are fractions of the picture."""
    finite = positions[np.isfinite(positions)]
    relative = positions.dtype.kind == "f" and finite.size and finite.min() >= -0.01
    wide = positions.astype(np.float64)
    return wide * extents if relative and finite.max() <= 1.01 else wide


def _tag(tile: np.ndarray, text: str, left: int, top: int, color: tuple[int, int, int]) -> None:
    font = cv2().FONT_HERSHEY_SIMPLEX
    written = text.encode("ascii", "replace").decode()
    (width, height), _ = cv2().getTextSize(written, font, 0.36, 1)
    left = max(0, min(left, tile.shape[1] - width - 4))
    base = top if top >= height + 5 else top + height + 5
    cv2().rectangle(tile, (left, base - height - 5), (left + width + 3, base), color, -1)
    place = (left + 2, base - 3)
    cv2().putText(tile, written, place, font, 0.36, (255, 255, 255), 1, cv2().LINE_AA)


def marks_of(
    count: int,
    boxes: Any,
    labels: Any,
    masks: Any,
    keypoints: Any,
    box_layout: str,
) -> list[SampleMarks]:
    """Boxes, points and masks of each of `count` samples."""
    if box_layout not in BOX_LAYOUTS:
        raise ArgumentValueError(
            f"`box_layout` is {box_layout!r}; expected one of {', '.join(BOX_LAYOUTS)}."
        )
    each_boxes = _rows("boxes", boxes, count, (2, 3))
    each_masks = _rows("masks", masks, count, (2, 3))
    each_points = _rows("keypoints", keypoints, count, (2, 3))
    each_labels = labels_of(labels, count)
    found = []
    for k in range(count):
        box = _checked("boxes", each_boxes[k], k, (4,))
        if box is not None and box_layout == "xyWH":
            box = np.concatenate([box[..., :2], box[..., :2] + box[..., 2:]], -1)
        label = each_labels[k]
        of_boxes = box is not None or (each_masks[k] is not None and each_masks[k].dtype == bool)
        found.append(
            SampleMarks(
                box,
                _checked("keypoints", each_points[k], k, (2, 3)),
                _mask(each_masks[k], k),
                label if of_boxes and isinstance(label, list) else None,
                k,
            )
        )
    return found


def labels_of(labels: Any, count: int) -> list[Any]:
    """Of each sample: a number or text, or a list with one for each of its boxes."""
    if labels is None:
        return [None] * count
    if isinstance(labels, TensorListBase) or hasattr(labels, "_backend"):
        (output,) = outputs_of(labels, None, count)
        labels = output.samples
    rows = [_label(row) for row in list(labels)[:count]]
    return rows + [None] * (count - len(rows))


def _label(row: Any) -> Any:
    if isinstance(row, str):
        return row
    if isinstance(row, (list, tuple)) and any(isinstance(item, str) for item in row):
        return [*map(str, row)]
    if isinstance(row, (list, tuple)) or hasattr(row, "__array__") or hasattr(row, "_backend"):
        array = array_of(row, "labels")[0]
        return array.item() if array.ndim == 0 else array.ravel().tolist()
    return row


def _rows(name: str, value: Any, count: int, axes: tuple[int, ...]) -> list[Any]:
    """The part of an argument for each of `count` samples."""
    if value is None:
        return [None] * count
    if isinstance(value, TensorListBase) or hasattr(value, "_backend"):
        output: DisplayOutput
        (output,) = outputs_of(value, None, count)
        rows: list[Any] = list(output.samples)
    else:
        alone = count == 1 and not isinstance(value, (list, tuple))
        if alone and (array := array_of(value, name)[0]).ndim in axes and not _is_batch(array):
            rows = [array]
        else:
            rows = [None if row is None else array_of(row, name)[0] for row in value]
    if len(rows) < count:
        raise ArgumentValueError(
            f"`{name}` is for {len(rows)} samples; {count} are shown: expected one array for each."
        )
    return rows


def _is_batch(array: np.ndarray) -> bool:
    return array.ndim == 3 and len(array) == 1


def _checked(
    name: str, array: np.ndarray | None, sample: int, last: tuple[int, ...]
) -> np.ndarray | None:
    if array is None:
        return None
    if not array.size:
        return array.reshape(0, last[0])
    if array.ndim == 1 and array.shape[0] in last:
        array = array[None]
    if array.ndim not in (2, 3) or array.shape[-1] not in last:
        wanted = " or ".join(map(str, last))
        raise ShapeError(
            f"`{name}` of sample {sample} has the shape {array.shape}; expected {wanted} numbers "
            f"along its last axis, one row each."
        )
    return array


def _mask(array: np.ndarray | None, sample: int) -> np.ndarray | None:
    if array is None:
        return None
    if array.ndim == 3 and array.shape[-1] == 1:
        array = array[..., 0]
    if array.ndim not in (2, 3) or array.dtype.kind not in "biu":
        raise ShapeError(
            f"`masks` of sample {sample} has the shape {array.shape} and elements of "
            f"{array.dtype}; expected numbers of classes (height, width), or one mask of bool for "
            "each object (objects, height, width)."
        )
    return array
