"""The size and the region that a user asks of an operator that resizes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.errors import ArgumentValueError, UsageError
from penstock.operators.argument_types import BoolArg, FloatArg, FloatListArg, StringArg
from penstock.operators.batch_arguments import scalars
from penstock.operators.image.resize_geometry import MODES, AxisGeometry, resize_geometry, single
from penstock.operators.image.resize_geometry_batch import OneByOneError
from penstock.operators.schema import Arg

if TYPE_CHECKING:
    from penstock.operators.operator import BatchContext, Operator

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
        'How sizes are meant: ``"default"`` takes them as they are, and axes without one get the '
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
        "`roi_end`. Where it lies behind the end, the axis is flipped.",
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


class ResizeRequest:
    """What the arguments of `RESIZE_ARGS` ask for, made ready for samples.

    Parameters
    ----------
    op
        The operator, in its `infer`.
    spatial_ndim
        2 for images, 3 for volumes.

    Raises
    ------
    UsageError
        If not exactly one way to give the size is used, or `roi_start` without `roi_end`.
    ArgumentValueError
        If a constant list has the wrong number of values or `mode` is unknown.
    """

    __slots__ = (
        "_max_size",
        "_mode",
        "_names",
        "_ndim",
        "_relative",
        "_roi",
        "_subpixel",
        "_tensors",
        "_way",
        "fixes_each_axis",
    )

    def __init__(self, op: Operator, spatial_ndim: int) -> None:
        args = op.args
        self._ndim = spatial_ndim
        self._names = _SEPARATE[-spatial_ndim:]
        ways = [name for name in ("size", "resize_shorter", "resize_longer") if op.given(name)]
        if any(op.given(name) for name in _SEPARATE):
            ways.append("separate")
        if len(ways) != 1:
            raise UsageError(
                "Give the size in exactly one way: `size`, `resize_shorter`, `resize_longer`, or "
                "any of `resize_x`, `resize_y` and `resize_z`; got "
                f"{', '.join(ways) if ways else 'none'}."
            )
        self._way = ways[0]
        mode = args.mode
        if self._way in ("resize_shorter", "resize_longer"):
            if mode is not None:
                raise UsageError(
                    f"`{self._way}` and `mode` exclude each other: `resize_shorter` is "
                    '`mode="not_smaller"`, and `resize_longer` is `mode="not_larger"`, with one '
                    "`size` for all axes."
                )
            mode = "not_smaller" if self._way == "resize_shorter" else "not_larger"
        self._mode = mode if mode is not None else "default"
        if self._mode not in MODES:
            allowed = ", ".join(f'"{m}"' for m in MODES)
            raise ArgumentValueError(f'`mode` must be one of {allowed}, got "{mode}".')
        if op.given("roi_start") != op.given("roi_end"):
            raise UsageError("`roi_start` and `roi_end` must be given together.")
        self._roi = op.given("roi_start")
        self._relative: bool = args.roi_relative
        self._subpixel: bool = args.subpixel_scale
        self._tensors = frozenset(op.tensor_args)
        self._max_size = None
        if args.max_size is not None:
            self._max_size = self._extents(args.max_size, "max_size")
        for name in ("size", "roi_start", "roi_end"):
            if getattr(args, name) is not None:
                self._extents(getattr(args, name), name)

        self.fixes_each_axis: bool = self._fixes_each_axis(op)
        """Whether the geometry of an axis follows from its extent alone, for every sample."""

    def _fixes_each_axis(self, op: Operator) -> bool:
        if self._roi or self._max_size is not None or self._mode not in ("default", "stretch"):
            return False
        names = ("size",) if self._way == "size" else self._names
        if self._way not in ("size", "separate") or any(n in op.tensor_args for n in names):
            return False
        return all(self._size(op.args))

    def _size(self, args: Any) -> tuple[float, ...]:
        """The requested size of each axis; 0 where none is."""
        if self._way == "size":
            return self._extents(args.size, "size")
        if self._way == "separate":
            given = [getattr(args, name) for name in self._names]
            return tuple([0.0 if v is None else v for v in given])
        return (getattr(args, self._way),) * self._ndim

    def __call__(self, args: Any, extents: tuple[int, ...]) -> tuple[AxisGeometry, ...]:
        """Geometry of each axis of a sample with these spatial extents."""
        roi = None
        if self._roi:
            roi = (
                self._region(args.roi_start, "roi_start", extents),
                self._region(args.roi_end, "roi_end", extents),
            )
        size = self._size(args)
        return resize_geometry(extents, size, self._mode, self._max_size, roi, self._subpixel)

    def batch(
        self, c: BatchContext, extents: np.ndarray, filters: tuple[np.ndarray, np.ndarray]
    ) -> np.ndarray:
        """How the axes of all samples are resampled; see `batch_geometry`.

        Parameters
        ----------
        c
            The batch.
        extents
            Spatial extents, int64 ``(axes, samples)``, or ``(axes, 1)`` if they are the same.
        filters
            For axes that shrink, and for others.

        Raises
        ------
        OneByOneError, ShapeError
            If only the samples one by one can tell.
        """
        from penstock.operators.image.resize_geometry_batch import batch_geometry

        roi = None
        if self._roi:
            roi = self._regions(c, "roi_start", extents), self._regions(c, "roi_end", extents)
        return batch_geometry(
            extents, self._sizes(c), self._mode, self._max_size, roi, self._subpixel, filters
        )

    def _sizes(self, c: BatchContext) -> np.ndarray:
        """`_size` of all samples, ``(axes, samples)``; one column if it is a constant."""
        if self._way == "size":
            return self._by_axis(c, "size")
        names = self._names if self._way == "separate" else (self._way,) * self._ndim
        if not self._tensors.intersection(names):
            return np.array(self._size(c.args), np.float64)[:, np.newaxis]
        sizes = np.zeros((self._ndim, c.size))
        for axis, name in enumerate(names):
            given = scalars(c, name, np.float64)
            if given is not None:
                sizes[axis] = given
        return sizes

    def _regions(self, c: BatchContext, name: str, extents: np.ndarray) -> np.ndarray:
        corner = self._by_axis(c, name)
        if not self._relative:
            return corner
        with np.errstate(over="ignore"):
            return np.asarray(corner.astype(np.float32).astype(np.float64) * extents)

    def _by_axis(self, c: BatchContext, name: str) -> np.ndarray:
        """Argument `name`, a number an axis, of all samples: ``(axes, samples)``."""
        if name not in self._tensors:
            constant = self._extents(getattr(c.args, name), name)
            return np.array(constant, np.float64)[:, np.newaxis]
        found = c.array(name, np.float64)
        assert found is not None
        found = found.reshape(c.size, -1)
        if found.shape[1] not in (1, self._ndim):
            raise OneByOneError
        return np.ascontiguousarray(np.broadcast_to(found.T, (self._ndim, c.size)))

    def _extents(self, values: Sequence[float], name: str) -> tuple[float, ...]:
        """One number an axis."""
        if len(values) == self._ndim:
            return tuple(values)
        if len(values) == 1:
            return (values[0],) * self._ndim
        raise ArgumentValueError(
            f"`{name}` must have one value for each of the {self._ndim} spatial axes, or one for "
            f"all, got {len(values)}."
        )

    def _region(self, values: Sequence[float], name: str, extents: tuple[int, ...]) -> Any:
        corner = self._extents(values, name)
        if self._relative:
            return tuple([single(v) * e for v, e in zip(corner, extents, strict=True)])
        return corner
