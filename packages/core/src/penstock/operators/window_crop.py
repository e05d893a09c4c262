"""Windows given by their extents and a relative position: the arguments of `crop`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from penstock.errors import ArgumentValueError, UsageError
from penstock.operators.argument_types import FloatArg, FloatListArg, StringArg
from penstock.operators.schema import Arg
from penstock.operators.window_arithmetic import Window, as_float32, round_half_away

if TYPE_CHECKING:
    from penstock.operators.operator import Operator

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
        "crop_h",
        FloatArg,
        None,
        "Height of the window in pixels; needs `crop_w`.",
        per_sample=True,
    ),
    Arg(
        "crop_w",
        FloatArg,
        None,
        "Width of the window in pixels; needs `crop_h`.",
        per_sample=True,
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


class CutAxis(NamedTuple):
    """How an axis is cut."""

    axis: int
    slot: int
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

    Parameters
    ----------
    op
        The operator, in its `infer`.
    layout
        Layout of the data the windows are for, such as ``"HWC"``.

    Raises
    ------
    UsageError
        If arguments are given together that exclude each other, or one without its companion.
    ArgumentValueError
        If `crop` has neither two nor three values, an extent is negative, or `rounding` is unknown.
    """

    __slots__ = ("cut", "sized_by_sample", "truncates", "whole")

    def __init__(self, op: Operator, layout: str) -> None:
        args = op.args
        has_crop, has_h, has_w = op.given("crop"), op.given("crop_h"), op.given("crop_w")
        has_d = op.given("crop_d")
        if has_h != has_w:
            raise UsageError("`crop_h` and `crop_w` must be given together.")
        if has_d and not has_w:
            raise UsageError("`crop_d` must be given together with `crop_h` and `crop_w`.")
        if has_crop and has_h:
            raise UsageError(
                "`crop` excludes `crop_h`, `crop_w` and `crop_d`; give the one or the others."
            )
        if args.rounding not in ("round", "truncate"):
            raise ArgumentValueError(
                f'`rounding` must be "round" or "truncate", got "{args.rounding}".'
            )
        self.truncates = args.rounding == "truncate"
        depth = layout.find("D")
        spatial = (depth if depth >= 0 else layout.find("F"), layout.find("H"), layout.find("W"))
        self.sized_by_sample = has_crop and "crop" in op.tensor_args
        """Whether `crop` may have two values for one sample and three for the next."""
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
                slot,
                constants[slot],
                ("crop_d", "crop_h", "crop_w")[slot],
                None if position in op.tensor_args else as_float32(getattr(args, position)),
                position,
            )
            for slot, (axis, position) in enumerate(
                zip(spatial, ("crop_pos_z", "crop_pos_y", "crop_pos_x"), strict=True)
            )
            if axis >= 0 and (constants[slot] is None or constants[slot] > 0)  # type: ignore[operator]
        )
        """The axes that are cut, or may be."""
        self.whole = not self.cut
        """Whether no argument asks for a crop, so that every window is the whole sample."""

    def __call__(self, args: Any, extents: Sequence[int]) -> Window:
        """Anchor and shape of the window in a sample with these extents.

        Raises
        ------
        ArgumentValueError
            If a position lies outside of [0, 1].
        """
        anchor = [0] * len(extents)
        shape = list(extents)
        by_sample = _three_extents(args.crop) if self.sized_by_sample else None
        for axis, slot, constant, extent_name, place, place_name in self.cut:
            if constant is not None:
                size = constant
            elif by_sample is not None:
                size = by_sample[slot]
            else:
                size = _extent(getattr(args, extent_name), extent_name)
            if size <= 0:
                continue
            if place is None:
                place = getattr(args, place_name)
            if not 0.0 <= place <= 1.0:
                raise ArgumentValueError(f"`{place_name}` must lie between 0 and 1, got {place:g}.")
            start = place * (extents[axis] - size)
            anchor[axis] = int(start) if self.truncates else round_half_away(start)
            shape[axis] = size
        return tuple(anchor), tuple(shape)


def _extent(value: float, name: str) -> int:
    if not math.isfinite(value):
        raise ArgumentValueError(f"`{name}` must be finite, got {value}.")
    if value < 0:
        raise ArgumentValueError(
            f"`{name}` has the extent {value:g}, which is negative; give pixels, or 0 to keep an "
            "axis whole."
        )
    return int(value)


def _three_extents(crop: Sequence[float]) -> tuple[int, ...]:
    """Depth (0 for whole), height and width of argument `crop`."""
    if len(crop) == 2:
        return (0, _extent(crop[0], "crop"), _extent(crop[1], "crop"))
    if len(crop) == 3:
        return tuple(_extent(value, "crop") for value in crop)
    raise ArgumentValueError(
        f"`crop` must have 2 values (height, width) or 3 (depth, height, width), got {len(crop)}."
    )
