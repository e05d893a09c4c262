"""Arguments of the operators that crop at random: the distribution of the window."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from headrace.errors import ArgumentValueError
from headrace.operators.support.argument_types import FloatListArg, IntArg
from headrace.operators.support.schema import Arg

RANDOM_CROP_ARGS: tuple[Arg, ...] = (
    Arg(
        "random_area",
        FloatListArg,
        (0.08, 1.0),
        "Smallest and largest area of the window, as fractions of the area of the image.",
    ),
    Arg(
        "random_aspect_ratio",
        FloatListArg,
        (3 / 4, 4 / 3),
        "Smallest and largest aspect ratio (width / height) of the window.",
    ),
    Arg(
        "num_attempts",
        IntArg,
        10,
        "How often an area and an aspect ratio that do not fit into the image are drawn anew, "
        "before the largest window that fits is taken.",
    ),
)


def random_crop_ranges(args: Any) -> tuple[tuple[float, float], tuple[float, float]]:
    """Bounds of the area and of the aspect ratio that `args` ask for."""
    area = _range("random_area", args.random_area)
    ratio = _range("random_aspect_ratio", args.random_aspect_ratio)
    if area[0] < 0 or area[1] <= 0:
        raise ArgumentValueError(
            f"`random_area` must be a range of positive fractions, got {list(args.random_area)}."
        )
    if area[0] > 1:  # which no window has that lies within the image
        raise ArgumentValueError(
            f"`random_area` is {list(args.random_area)}; it has fractions of the image's area, the "
            "first of them 1 at most, as in `random_area=[0.08, 1.0]`."
        )
    if ratio[0] <= 0:
        raise ArgumentValueError(
            "`random_aspect_ratio` must be a range of positive numbers, got "
            f"{list(args.random_aspect_ratio)}."
        )
    return area, ratio


def _range(name: str, values: Sequence[float]) -> tuple[float, float]:
    if len(values) not in (1, 2):
        raise ArgumentValueError(
            f"`{name}` must have two values (or one, for both), got {len(values)}."
        )
    low, high = values[0], values[-1]
    if not (math.isfinite(low) and math.isfinite(high) and low <= high):
        raise ArgumentValueError(
            f"`{name}` must be a range of finite numbers, the smaller first, got {list(values)}."
        )
    return low, high
