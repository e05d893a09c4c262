"""The size and the region that a user asks of an operator that resizes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from headrace.errors import ArgumentValueError, UsageError
from headrace.kernels.plan import resize_axes as _plan
from headrace.operators.support.argument_types import BoolArg, FloatArg, FloatListArg, StringArg
from headrace.operators.support.arguments import scalars
from headrace.operators.support.schema import Arg

if TYPE_CHECKING:
    from headrace.operators.support.operator import Operator
    from headrace.operators.support.planning import PlanContext

MODES = ("default", "stretch", "not_larger", "not_smaller")

RESIZE_ARGS: tuple[Arg, ...] = (
    Arg(
        "size",
        FloatListArg,
        None,
        "Extents of the output in pixels: `(height, width)` or `(depth, height, width)`, or one "
        "number for all. An extent of 0 follows from the others, by `mode`; a negative one flips.",
        per_sample=True,
        shape_of="(2,) or (3,)",
    ),
    Arg(
        "resize_x",
        FloatArg,
        None,
        "Width of the output in pixels; 0 or not given: it follows from the other extents.",
        per_sample=True,
    ),
    Arg("resize_y", FloatArg, None, "Height of the output, like `resize_x`.", per_sample=True),
    Arg("resize_z", FloatArg, None, "Depth of the output, like `resize_x`.", per_sample=True),
    Arg(
        "resize_shorter",
        FloatArg,
        None,
        "Length of the output's shorter side in pixels; the aspect ratio is kept.",
        per_sample=True,
    ),
    Arg(
        "resize_longer",
        FloatArg,
        None,
        "Length of the output's longer side in pixels; the aspect ratio is kept.",
        per_sample=True,
    ),
    Arg(
        "mode",
        StringArg,
        None,
        'Meaning of sizes: ``"default"`` takes them as they are, and axes without one get the '
        'mean scale of the others; ``"stretch"`` leaves these alone; ``"not_larger"`` and '
        '``"not_smaller"`` keep the aspect ratio and make the output the largest that fits into, '
        "or the smallest that covers, the size.",
        choices=MODES,
    ),
    Arg(
        "max_size",
        FloatListArg,
        None,
        "Largest extents of the output in pixels, one number for all axes or one each. Modes that "
        "keep the aspect ratio keep it under this limit, too.",
    ),
    Arg(
        "subpixel_scale",
        BoolArg,
        True,
        "Where an output extent has to be rounded to whole pixels: stretch the region of the "
        "source about its centre, so that the scale stays exactly as asked for. Otherwise the "
        "scale gives way.",
    ),
    Arg(
        "roi_start",
        FloatListArg,
        None,
        "Where the region of the source that is shown begins, in the order of `size`; needs "
        "`roi_end`. Where it lies after the end, the axis is flipped.",
        per_sample=True,
        shape_of="(2,) or (3,)",
    ),
    Arg(
        "roi_end",
        FloatListArg,
        None,
        "Where the region of the source that is shown ends; see `roi_start`. Outside of the "
        "image, its border is repeated.",
        per_sample=True,
        shape_of="(2,) or (3,)",
    ),
    Arg(
        "roi_relative",
        BoolArg,
        False,
        "Whether `roi_start` and `roi_end` are fractions of the image's extents, not pixels.",
    ),
)

_SEPARATE = ("resize_z", "resize_y", "resize_x")


_NOTHING = np.empty((0, 0), np.float64)
_CENTRE = np.full((3, 1), 0.5)
_NO_LIMITS = np.zeros(3)


class ResizeRequest:
    """Request made by the arguments of `RESIZE_ARGS`, for planning samples."""

    __slots__ = (
        "_max_size",
        "_mode",
        "_names",
        "_ndim",
        "_relative",
        "_roi",
        "_subpixel",
        "_way",
    )

    def __init__(self, op: Operator, spatial_ndim: int) -> None:
        args = op.args
        self._ndim = spatial_ndim
        ways = [name for name in ("size", "resize_shorter", "resize_longer") if op.given(name)]
        separate = [name for name in _SEPARATE if op.given(name)]
        if len(ways) + bool(separate) != 1:
            raise UsageError(
                "Give the size in exactly one way: `size`, `resize_shorter`, `resize_longer`, or "
                "any of `resize_x`, `resize_y` and `resize_z`; got "
                f"{' and '.join(f'`{name}`' for name in ways + separate) or 'none'}."
            )
        self._way = ways[0] if ways else "separate"
        self._names = (self._way,) * spatial_ndim if ways else _SEPARATE[-spatial_ndim:]
        mode = args.mode
        if self._way in ("resize_shorter", "resize_longer"):
            if mode is not None:
                raise UsageError(
                    f"`{self._way}` and `mode` exclude each other: `resize_shorter` is "
                    '`mode="not_smaller"`, and `resize_longer` is `mode="not_larger"`, with one '
                    "`size` for all axes."
                )
            mode = "not_smaller" if self._way == "resize_shorter" else "not_larger"
        elif mode is None:
            mode = "default"
        self._mode = MODES.index(mode)
        if op.given("roi_start") != op.given("roi_end"):
            raise UsageError("`roi_start` and `roi_end` must be given together.")
        self._roi = op.given("roi_start")
        self._relative: bool = args.roi_relative
        self._subpixel: bool = args.subpixel_scale
        self._max_size = np.zeros(spatial_ndim)
        if args.max_size is not None:
            self._check_count(len(args.max_size), "max_size")
            with np.errstate(over="ignore"):
                self._max_size[:] = np.array(args.max_size, np.float32)
            good = np.isfinite(self._max_size)
            if not good.all():
                value = args.max_size[int(good.argmin()) % len(args.max_size)]
                raise ArgumentValueError(
                    f"`max_size` must be a finite number of pixels, got {value}."
                )
        for name in ("size", "roi_start", "roi_end"):
            if getattr(args, name) is not None:
                self._check_count(len(getattr(args, name)), name)

    def plan(
        self, c: PlanContext, extents: np.ndarray, filters: tuple[np.ndarray, np.ndarray]
    ) -> np.ndarray:
        """Plan the resampling of all axes, for whole samples: `AXIS` ``(axes, samples)``.

        `extents`: spatial extents, int64 ``(axes, samples)``; ``(axes, 1)`` where one stands for
        all.
        """
        regions = (_NOTHING, _NOTHING)
        if self._roi:
            regions = self._region(c, "roi_start", extents), self._region(c, "roi_end", extents)
        size = self._by_axis(c, "size") if self._way == "size" else self._sizes(c)
        return planned_axes(
            extents, size, filters, regions, self._mode, self._max_size, subpixel=self._subpixel
        )

    def _sizes(self, c: PlanContext) -> np.ndarray:
        """The requested size of each axis, ``(axes, samples)``; 0 where none is."""
        sizes = np.zeros((self._ndim, c.size))
        for axis, name in enumerate(self._names):
            given = scalars(c, name, np.float64)
            if given is not None:
                sizes[axis] = given
        return sizes

    def _region(self, c: PlanContext, name: str, extents: np.ndarray) -> np.ndarray:
        """Corners of regions, ``(axes, samples)``."""
        corner = self._by_axis(c, name)
        if not self._relative:
            return corner
        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray(corner.astype(np.float32).astype(np.float64) * extents)

    def _by_axis(self, c: PlanContext, name: str) -> np.ndarray:
        """Argument `name`, a number an axis, of all samples: ``(axes, samples)``."""
        return by_axis(c, name, self._ndim)

    def _check_count(self, count: int, name: str) -> None:
        _check_count(count, name, self._ndim)


def by_axis(c: PlanContext, name: str, rank: int) -> np.ndarray:
    """Argument `name`, a number for each of `rank` axes, of all samples: ``(axes, samples)``."""
    found = c.array(name, np.float64)
    assert found is not None
    found = found.reshape(len(found), math.prod(found.shape[1:]))
    _check_count(found.shape[1], name, rank)
    return np.ascontiguousarray(np.broadcast_to(found.T, (rank, c.size)))


def _check_count(count: int, name: str, rank: int) -> None:
    if count not in (1, rank):
        raise ArgumentValueError(
            f"`{name}` must have one value for each of the {rank} axes, or one for all, got "
            f"{count}."
        )


def planned_axes(
    extents: np.ndarray,
    size: np.ndarray,
    filters: tuple[np.ndarray, np.ndarray],
    regions: tuple[np.ndarray, np.ndarray] = (_NOTHING, _NOTHING),
    mode: int = 0,
    max_size: np.ndarray = _NO_LIMITS,
    *,
    subpixel: bool = True,
    alignment: np.ndarray = _CENTRE,
    rounding: int = 0,
) -> np.ndarray:
    """Call `headrace.kernels.plan.resize_axes.resize_axes`: `AXIS` ``(axes, samples)``.

    Extents decide how many samples there are.
    """
    axes = np.empty(extents.shape, _plan.AXIS)
    wrong = np.empty(2)
    good = _plan.resize_axes(
        axes,
        extents,
        size,
        mode,
        max_size,
        *regions,
        subpixel,
        alignment,
        rounding,
        *filters,
        wrong,
    )
    if not good:
        kind, value = int(wrong[0]), float(wrong[1])
        if kind == _plan.OUTPUT:
            raise ArgumentValueError(
                f"An output extent would be {value:g} pixels. Check the size arguments and the "
                "region, or set `max_size`."
            )
        what = {
            _plan.SIZE: "the requested size",
            _plan.START: "`roi_start`",
            _plan.END: "`roi_end`",
            _plan.REGION: "the region of the source",
        }[kind]
        raise ArgumentValueError(f"{what} must be a finite number of pixels, got {value}.")
    return axes
