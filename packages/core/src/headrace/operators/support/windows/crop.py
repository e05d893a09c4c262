"""Windows given by their extents and a relative position: the arguments of `crop`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from headrace.errors import ArgumentValueError
from headrace.kernels.plan import windows as _windows
from headrace.operators.support.argument_types import FloatArg, FloatListArg, StringArg
from headrace.operators.support.arguments import numbers_of, rows_of
from headrace.operators.support.compiled_steps import CompiledStepContext, WindowWords, Word
from headrace.operators.support.rules import at_most_one, needs, together
from headrace.operators.support.schema import Arg
from headrace.operators.support.windows.arithmetic import FARTHEST, Windows, as_float32, whole_each
from headrace.tensors.gpu.batch import as_contiguous

if TYPE_CHECKING:
    from headrace.operators.support.operator import Operator
    from headrace.operators.support.planning import PlanContext

CROP_LAYOUTS = (
    *("HWC", "CHW", "DHWC", "CDHW", "FHWC"),
    *("FCHW", "CFHW", "FDHWC", "FCDHW", "CFDHW"),
)
CROP_ARGS: tuple[Arg, ...] = (
    Arg(
        "crop",
        FloatListArg,
        None,
        "Extents of the window in pixels: `(height, width)` or `(depth, height, width)`. "
        "Fractions are dropped; an extent of 0 or less keeps the whole axis. "
        "Excludes `crop_h`, `crop_w` and `crop_d`.",
        per_sample=True,
        shape_of="(2,) or (3,)",
    ),
    Arg(
        "crop_d",
        FloatArg,
        None,
        "Depth of the window in voxels (in frames where the data has frames and no depth); needs "
        "`crop_h` and `crop_w`. Ignored by data that has neither axis.",
        per_sample=True,
    ),
    Arg(
        "crop_h", FloatArg, None, "Height of the window in pixels; needs `crop_w`.", per_sample=True
    ),
    Arg(
        "crop_w", FloatArg, None, "Width of the window in pixels; needs `crop_h`.", per_sample=True
    ),
    Arg(
        "crop_pos_x",
        FloatArg,
        0.5,
        "Horizontal position of the window between 0 (leftmost) and 1 (rightmost): it starts "
        "at column ``crop_pos_x * (W - crop_w)``.",
        per_sample=True,
    ),
    Arg(
        "crop_pos_y",
        FloatArg,
        0.5,
        "Vertical position of the window between 0 (top) and 1 (bottom): the window starts at row "
        "``crop_pos_y * (H - crop_h)``.",
        per_sample=True,
    ),
    Arg(
        "crop_pos_z",
        FloatArg,
        0.5,
        "Position of the window along the depth between 0 (front) and 1 (back): it starts at "
        "slice ``crop_pos_z * (D - crop_d)``.",
        per_sample=True,
    ),
    Arg(
        "rounding",
        StringArg,
        "round",
        'How a fractional start becomes a whole one: ``"round"`` to the nearest, halves away from '
        'zero, or ``"truncate"`` towards zero.',
        choices=("round", "truncate"),
    ),
)


CROP_RULES = (
    together("crop_h", "crop_w"),
    needs("crop_d", "crop_h", "crop_w"),
    at_most_one("crop", "crop_h crop_w crop_d"),
)


def check_crop(args: Any) -> None:
    """Raise what is wrong with the constant `crop`, whatever the data are."""
    if args.crop is not None:
        _three_extents(args.crop)


class CutAxis(NamedTuple):
    """Arguments that cut one axis."""

    axis: int
    number: int
    """0 for the depth, 1 for the height, 2 for the width."""
    size: int | None
    """Extent of the window, if it is the same for all samples."""
    size_name: str
    """The argument that it comes from, unless that is `crop`."""
    place: float | None
    """Position of the window, if it is the same for all samples."""
    place_name: str


class CropWindow:
    """The window that the arguments of `CROP_ARGS` describe.

    `layout`: layout of the data the windows are for, such as ``"HWC"``.
    """

    __slots__ = ("_axes", "_places", "_sizes", "cut", "differ", "sized_by_sample", "truncates")

    def __init__(self, op: Operator, layout: str) -> None:
        args = op.args
        has_crop = op.given("crop")
        self.truncates = args.rounding == "truncate"
        depth = layout.find("D")
        spatial = (depth if depth >= 0 else layout.find("F"), layout.find("H"), layout.find("W"))
        self.sized_by_sample = has_crop and "crop" in op.tensor_args
        """True if `crop` may have two values for one sample and three for the next."""
        constants: tuple[int | None, ...]
        if has_crop:
            constants = (None, None, None) if self.sized_by_sample else _three_extents(args.crop)
        else:
            constants = tuple(
                None if name in op.tensor_args else _extent(getattr(args, name) or 0.0, name)
                for name in ("crop_d", "crop_h", "crop_w")
            )
        self.cut = tuple(
            CutAxis(
                axis,
                number,
                constants[number],
                ("crop_d", "crop_h", "crop_w")[number],
                None if position in op.tensor_args else as_float32(getattr(args, position)),
                position,
            )
            for number, (axis, position) in enumerate(
                zip(spatial, ("crop_pos_z", "crop_pos_y", "crop_pos_x"), strict=True)
            )
            if axis >= 0 and (constants[number] is None or constants[number] > 0)  # type: ignore[operator]
        )
        """The axes that are cut, or may be."""
        self.differ = any(cut.size is None or cut.place is None for cut in self.cut)
        """True if windows of samples of the same extents may differ."""
        self._axes = np.array([cut.axis for cut in self.cut], np.int64)
        self._sizes = np.array([[min(cut.size or 0, FARTHEST)] for cut in self.cut], np.int64)
        self._places = np.array([[cut.place or 0.0] for cut in self.cut], np.float64)

    def plan(self, c: PlanContext, extents: np.ndarray) -> Windows:
        """The windows in samples of these extents, int64 ``(samples, ndim)``."""
        count = len(extents)
        wrong = np.zeros(count, np.bool_)
        sizes: np.ndarray = self._sizes.reshape(-1, 1)
        places: np.ndarray = self._places.reshape(-1, 1)
        if self.differ:
            by_sample = self._by_sample(c) if self.sized_by_sample else None
            sizes, places = (np.repeat(given, count, axis=1) for given in (sizes, places))
            for k, (_, number, size, size_name, place, place_name) in enumerate(self.cut):
                if size is None:
                    if by_sample is not None:
                        found, size_name = by_sample[:, number], "crop"
                    else:
                        found = numbers_of(c, size_name, np.float64)
                    _check_extents(found, size_name)
                    sizes[k] = whole_each(np.maximum(found, 0.0))
                if place is None:
                    places[k] = numbers_of(c, place_name, np.float64)
        extents = as_contiguous(extents)
        anchors, shapes = np.empty_like(extents), np.empty_like(extents)
        _windows.cut_windows(
            extents, self._axes, sizes, places, self.truncates, anchors, shapes, wrong
        )
        if np.count_nonzero(wrong):
            index = int(wrong.argmax())
            for k, cut in enumerate(self.cut):
                place = float(places[k, index if places.shape[1] > 1 else 0])
                size = sizes[k, index if sizes.shape[1] > 1 else 0]
                if size > 0 and not 0.0 <= place <= 1.0:
                    raise ArgumentValueError(
                        f"Anchor for dimension {k}, `{cut.place_name}`={place:g}, is out of range "
                        "[0, 1]."
                    )
        return anchors, shapes

    def words(self, c: CompiledStepContext) -> WindowWords | None:
        """The window, as instructions know it; `None` where they do not."""
        words: list[Word] = [self.truncates, len(self.cut)]
        for cut in self.cut:
            place = c.number(cut.place_name, cut.place)
            if cut.size is None or place is None:
                return None
            words += [cut.axis, min(cut.size, FARTHEST), *place]
        return WindowWords(is_crop=True, words=words)

    @staticmethod
    def _by_sample(c: PlanContext) -> np.ndarray:
        """Depth (0 for whole), height and width of `crop`, float64 ``(samples, 3)``."""
        found = rows_of(c, "crop", np.float64)
        if found.shape[1] not in (2, 3):
            _three_extents([0.0] * found.shape[1])
        if found.shape[1] == 2:
            found = np.concatenate([np.zeros((c.size, 1)), found], axis=1)
        return found


def _check_extents(values: np.ndarray, name: str) -> None:
    good = np.isfinite(values)
    if not good.all():
        _extent(float(values[int(good.argmin())]), name)


def _extent(value: float, name: str) -> int:
    if not math.isfinite(value):
        raise ArgumentValueError(f"`{name}` must be finite, got {value}.")
    return max(int(value), 0)


def _three_extents(crop: Sequence[float]) -> tuple[int, ...]:
    """Depth (0 for whole), height and width of argument `crop`."""
    if len(crop) == 2:
        return (0, _extent(crop[0], "crop"), _extent(crop[1], "crop"))
    if len(crop) == 3:
        return tuple(_extent(value, "crop") for value in crop)
    raise ArgumentValueError(
        f"`crop` must have 2 values (height, width) or 3 (depth, height, width), got {len(crop)}."
    )
