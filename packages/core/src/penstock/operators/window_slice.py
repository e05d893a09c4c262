"""Windows given by their coordinates, absolute or relative: the arguments of `slice`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.errors import (
    ArgumentValueError,
    DataTypeError,
    ShapeError,
    UsageError,
)
from penstock.operators.argument_types import BoolArg, FloatListArg, IntListArg, LayoutArg
from penstock.operators.axes import checked_axes, named_axes
from penstock.operators.schema import Arg
from penstock.operators.window_arithmetic import Window, as_float32, round_half_away
from penstock.types import DALIDataType

if TYPE_CHECKING:
    from penstock.operators.operator import Operator
    from penstock.operators.schema import Spec

_EXCLUSIVE = "Not to be combined with positional anchor and shape inputs."

NAMED_SLICE_ARGS: tuple[Arg, ...] = (
    Arg(
        "start", IntListArg, None, f"First coordinates of the window. {_EXCLUSIVE}", per_sample=True
    ),
    Arg(
        "rel_start",
        FloatListArg,
        None,
        f"First coordinates of the window as fractions of the extents. {_EXCLUSIVE}",
        per_sample=True,
    ),
    Arg(
        "end",
        IntListArg,
        None,
        f"Coordinates one past the last of the window. {_EXCLUSIVE}",
        per_sample=True,
    ),
    Arg(
        "rel_end",
        FloatListArg,
        None,
        f"End of the window as fractions of the extents. {_EXCLUSIVE}",
        per_sample=True,
    ),
    Arg("shape", IntListArg, None, f"Extents of the window. {_EXCLUSIVE}", per_sample=True),
    Arg(
        "rel_shape",
        FloatListArg,
        None,
        f"Extents of the window as fractions of the extents of the data. {_EXCLUSIVE}",
        per_sample=True,
    ),
)

SLICE_ARGS: tuple[Arg, ...] = (
    *NAMED_SLICE_ARGS,
    Arg(
        "axes",
        IntListArg,
        None,
        "Axes that the coordinates belong to, in their order; negative ones count from the last. "
        "An empty list stands for all axes. Excludes `axis_names`.",
        per_sample=True,
    ),
    Arg(
        "axis_names",
        LayoutArg,
        None,
        'Axes that the coordinates belong to, as letters of the layout; ``"WH"`` where neither '
        "`axes` nor `axis_names` is given. Data without a layout that has 2, 3 or 4 dimensions is "
        'taken for ``"HW"``, ``"HWC"`` or ``"DHWC"``.',
    ),
    Arg(
        "normalized_anchor",
        BoolArg,
        True,
        "Whether a floating point anchor input is a fraction of the extents; integers never are.",
    ),
    Arg(
        "normalized_shape",
        BoolArg,
        True,
        "Whether a floating point shape input is a fraction of the extents; integers never are.",
    ),
)


class SliceWindow:
    """The window that the arguments of `SLICE_ARGS` and the positional inputs describe.

    Parameters
    ----------
    op
        The operator, in its `infer`.
    data
        What is known of the data; its layout or rank resolves `axis_names` and `axes`.
    positional
        Specs of the anchor and of the shape input; none where named arguments are used.

    Raises
    ------
    UsageError
        If named arguments and positional inputs are mixed, or arguments exclude each other.
    LayoutError, ArgumentValueError, DataTypeError
        If an axis does not exist or occurs twice, or the inputs have types that are not taken.
    """

    __slots__ = (
        "_asked_axes",
        "_axes",
        "axes_by_sample",
        "constant_end",
        "constant_start",
        "end",
        "normalized_anchor",
        "normalized_shape",
        "positional",
        "start",
    )

    def __init__(self, op: Operator, data: Spec, *positional: Spec) -> None:
        starts = [name for name in ("start", "rel_start") if op.given(name)]
        ends = [name for name in ("end", "rel_end", "shape", "rel_shape") if op.given(name)]
        for group in (starts, ends):
            if len(group) > 1:
                listed = " and ".join(f"`{name}`" for name in group)
                raise UsageError(f"{listed} exclude each other; give one of them.")
        named = starts + ends
        if named and positional:
            raise UsageError(
                f"`{named[0]}` excludes the positional anchor and shape inputs; give either."
            )
        if not named and len(positional) != 2:
            raise UsageError(
                "A slice needs named arguments (`start` or `rel_start` and one of `end`, "
                "`rel_end`, `shape`, `rel_shape`), or both an anchor and a shape input; "
                f"got {1 + len(positional)} inputs and no named argument."
            )
        self.axes_by_sample = "axes" in op.tensor_args
        """Whether `axes` may be others from sample to sample."""
        if self.axes_by_sample and op.given("axis_names"):
            raise UsageError("`axes` and `axis_names` exclude each other; give one of them.")
        axes = () if self.axes_by_sample else _asked_axes(op)
        if isinstance(axes, str) and (data.layout or data.ndim is not None):
            axes = named_axes(axes, data.layout or _implied_layout(data.ndim))
        self._asked_axes: tuple[int, ...] | str = axes
        # Where the rank is only known with the data, every sample resolves the axes by itself.
        self._axes: Sequence[int] | None = (
            checked_axes(axes, data.ndim)
            if axes and not isinstance(axes, str) and data.ndim is not None
            else None
        )
        self.positional = bool(positional)
        self.normalized_anchor = self.normalized_shape = False
        self.start = starts[0] if starts else ""
        self.end = ends[0] if ends else ""
        """Names of the arguments that tell where windows start and end; empty where none does."""
        self.constant_start = _constant(op, self.start)
        self.constant_end = _constant(op, self.end)
        if positional:
            anchor, shape = positional
            if anchor.dtype != shape.dtype:
                raise DataTypeError(
                    "The anchor and shape inputs must have the same type, got "
                    f"{anchor.dtype.name} and {shape.dtype.name}."
                )
            if anchor.dtype not in _POSITIONAL_TYPES:
                allowed = ", ".join(t.name for t in _POSITIONAL_TYPES)
                raise DataTypeError(
                    f"The anchor and shape inputs must be one of {allowed}, got "
                    f"{anchor.dtype.name}; `cast` them first."
                )
            if anchor.dtype == DALIDataType.FLOAT:
                self.normalized_anchor = op.args.normalized_anchor
                self.normalized_shape = op.args.normalized_shape

    def __call__(self, args: Any, extents: Sequence[int], *positional: np.ndarray) -> Window:
        """Anchor and shape of the window in a sample with these extents.

        `positional` holds this sample's anchor and shape inputs, if there are any.

        Raises
        ------
        ShapeError
            If the number of coordinates is not the number of axes.
        ArgumentValueError
            If a coordinate is not finite, a shape negative, or the end lies before the start.
        """
        axes = self.axes(args, len(extents))
        anchor = [0] * len(extents)
        shape = list(extents)
        if self.positional:
            self._place_positional(axes, extents, positional, anchor, shape)
        else:
            self._place_named(axes, extents, args, anchor, shape)
        return tuple(anchor), tuple(shape)

    def axes(self, args: Any, ndim: int) -> Sequence[int]:
        """The sliced axes of a sample, counted from the front."""
        if self._axes is not None:
            return self._axes
        asked = args.axes if self.axes_by_sample else self._asked_axes
        if isinstance(asked, str):
            asked = named_axes(asked, _implied_layout(ndim))
        return checked_axes(asked, ndim) if asked else range(ndim)

    def _place_positional(
        self,
        axes: Sequence[int],
        extents: Sequence[int],
        positional: Sequence[np.ndarray],
        anchor: list[int],
        shape: list[int],
    ) -> None:
        starts, sizes = positional[0].reshape(-1).tolist(), positional[1].reshape(-1).tolist()
        if not len(starts) == len(sizes) == len(axes):
            raise ShapeError(
                f"The anchor and shape inputs must have one value for each of the {len(axes)} "
                f"sliced axes, got {len(starts)} and {len(sizes)}."
            )
        relative_start, relative_size = self.normalized_anchor, self.normalized_shape
        for axis, start, size in zip(axes, starts, sizes, strict=True):
            extent = extents[axis]
            if relative_start and relative_size:
                # Sum before the only multiplication: fractions that add up to one reach the end.
                end = (start + size) * extent
                start = start * extent
            else:
                if relative_start:
                    start = start * extent
                end = start + (size * extent if relative_size else size)
            anchor[axis], shape[axis] = _span(start, end, axis)

    def _place_named(
        self,
        axes: Sequence[int],
        extents: Sequence[int],
        args: Any,
        anchor: list[int],
        shape: list[int],
    ) -> None:
        starts = self._values(self.start, self.constant_start, args, len(axes))
        ends = self._values(self.end, self.constant_end, args, len(axes))
        for i, axis in enumerate(axes):
            extent = extents[axis]
            start: float = 0
            if starts is not None:
                start = starts[i]
                if self.start == "rel_start":
                    start = as_float32(start * extent)
            end: float = extent
            if ends is not None:
                end = ends[i]
                if self.end == "rel_end":
                    end = as_float32(end * extent)
                elif self.end != "end":
                    if not end >= 0:
                        raise ArgumentValueError(
                            f"`{self.end}` must not be negative, got {end:g} for axis {axis}."
                        )
                    if self.end == "shape":
                        end = start + end
                    elif self.start == "rel_start":
                        # Summed before the only multiplication, which is not rounded to float32:
                        # fractions that add up to one reach the end.
                        end = (starts[i] + end) * extent  # type: ignore[index]
                    else:
                        end = start + as_float32(end * extent)
            anchor[axis], shape[axis] = _span(start, end, axis)

    @staticmethod
    def _values(
        name: str, constant: Sequence[float] | None, args: Any, count: int
    ) -> Sequence[float] | None:
        if not name:
            return None
        values: Sequence[float] = constant if constant is not None else getattr(args, name)
        if len(values) != count:
            if len(values) == 1:
                return list(values) * count
            raise ShapeError(
                f"`{name}` must have one value for each of the {count} sliced axes, "
                f"got {len(values)}."
            )
        return values


_POSITIONAL_TYPES = (DALIDataType.INT32, DALIDataType.INT64, DALIDataType.FLOAT)


def _constant(op: Operator, name: str) -> tuple[float, ...] | None:
    if not name or name in op.tensor_args:
        return None
    values = getattr(op.args, name)
    return tuple(map(as_float32, values)) if name.startswith("rel_") else tuple(values)


def _asked_axes(op: Operator) -> tuple[int, ...] | str:
    """The sliced axes as the user counts or names them; empty for all of them."""
    axes, names = op.args.axes, op.args.axis_names
    if axes is not None:
        if names is not None:
            raise UsageError("`axes` and `axis_names` exclude each other; give one of them.")
        return tuple(axes)
    return "WH" if names is None else str(names)


def _implied_layout(ndim: int | None) -> str:
    """What axes of data without a layout are called, as in DALI."""
    return {2: "HW", 3: "HWC", 4: "DHWC"}.get(ndim or 0, "")


def _span(start: float, end: float, axis: int) -> tuple[int, int]:
    """First coordinate and extent between two coordinates, each rounded by itself."""
    if not (math.isfinite(start) and math.isfinite(end)):
        raise ArgumentValueError(
            f"The slice must have finite coordinates, got start {start} and end {end} "
            f"for axis {axis}."
        )
    if end < start:
        raise ArgumentValueError(
            f"The end of the slice lies before its start: start {start:g}, end {end:g}, "
            f"axis {axis}."
        )
    first = round_half_away(start)
    return first, round_half_away(end) - first
