"""Windows given by their coordinates, absolute or relative: the arguments of `slice`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.errors import ArgumentValueError, DataTypeError, ShapeError, UsageError
from headrace.kernels.plan import windows as _windows
from headrace.operators.support.argument_types import BoolArg, FloatListArg, IntListArg, LayoutArg
from headrace.operators.support.arguments import rows_of
from headrace.operators.support.axes import checked_axes, named_axes
from headrace.operators.support.compiled_steps import CompiledStepContext, WindowWords, Word
from headrace.operators.support.rules import AXES_OR_NAMES, at_most_one
from headrace.operators.support.schema import Arg
from headrace.operators.support.windows.arithmetic import FARTHEST, Windows, as_float32, round_each
from headrace.tensors.gpu.batch import as_contiguous
from headrace.types import DALIDataType

if TYPE_CHECKING:
    from headrace.operators.support.operator import Operator
    from headrace.operators.support.planning import PlanContext
    from headrace.operators.support.schema import Spec

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


SLICE_RULES = (
    at_most_one(
        *("start", "rel_start"),
        said='"start" and "rel_start" arguments are mutually exclusive.',
    ),
    at_most_one(
        *("end", "rel_end", "shape", "rel_shape"),
        said='"end", "rel_end", "shape", and "rel_shape" arguments are mutually exclusive.',
    ),
    AXES_OR_NAMES,
)


class SliceWindow:
    """The window that the arguments of `SLICE_ARGS` and the positional inputs describe."""

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
        """True if `axes` may be others from sample to sample."""
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
        self.start, self.end = (
            names[0] if names and _constant(op, names[0]) != () else "" for names in (starts, ends)
        )
        """Names of the arguments that tell where windows start and end; empty where none does,
        or an empty list does."""
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

    def plan(
        self, c: PlanContext, extents: np.ndarray, *positional: Sequence[np.ndarray] | np.ndarray
    ) -> Windows:
        """The windows in samples of these extents, int64 ``(samples, ndim)``.

        Without arguments that differ by sample, one row is enough for samples that are all alike.
        `positional` holds the anchor and shape inputs, one row a sample, or one array for each, if
        there are any.
        """
        axes = self._axes_of(c, extents.shape[1])
        if positional:
            return self._positional_windows(extents, axes, positional)
        begins = self._coordinates(c, self.start, self.constant_start, len(axes))
        ends = self._coordinates(c, self.end, self.constant_end, len(axes))
        extents = as_contiguous(extents)
        anchors, shapes = np.empty_like(extents), np.empty_like(extents)
        wrong = np.empty(len(extents), np.bool_)
        if _windows.slice_spans(
            extents,
            np.array(axes, np.int64),
            _windows.BEGINS[self.start],
            *begins,
            _windows.ENDS[self.end],
            *ends,
            FARTHEST,
            anchors,
            shapes,
            wrong,
        ):
            index = int(wrong.argmax())
            self._refuse(axes, extents[index], _row(begins, index), _row(ends, index))
        return anchors, shapes

    def words(self, c: CompiledStepContext, ndim: int) -> WindowWords | None:
        """The window, as instructions know it; `None` where they do not."""
        if self.positional or self.axes_by_sample:
            return None
        axes = self.axes(None, ndim)
        words: list[Word] = []
        constants: list[list[list[Word]]] = []
        for name, kind, constant in (
            (self.start, _windows.BEGINS[self.start], self.constant_start),
            (self.end, _windows.ENDS[self.end], self.constant_end),
        ):
            column, extent = -1, -1
            found: list[list[Word]] = [[0, 0.0] for _ in axes]
            if name and constant is not None:
                if len(constant) not in (1, len(axes)):
                    return None
                whole, part = _constant_coordinates(name, constant, len(axes))
                if whole.size:
                    found = [[int(value), 0.0] for value in whole[0]]
                else:
                    found = [[0, float(value)] for value in part[0]]
            elif name:
                values = c.tensors[name]
                wanted = np.float32 if name.startswith("rel_") else np.int32
                if values.dtype != wanted or values.ndim > 1:
                    return None
                column, extent = values.address, values.extents if values.ndim else -1
            words += [kind, column, extent]
            constants.append(found)
        words += [FARTHEST, len(axes)]
        for axis, first, last in zip(axes, *constants, strict=True):
            words += [axis, *first, *last]
        return WindowWords(is_crop=False, words=words)

    def _axes_of(self, c: PlanContext, ndim: int) -> list[int]:
        """The sliced axes of all samples."""
        args = c.args
        if self.axes_by_sample:
            asked = c.values("axes")
            if any(axes != asked[0] for axes in asked):
                raise ArgumentValueError("`axes` differ from sample to sample.")
            args = SimpleNamespace(axes=asked[0])
        return list(self.axes(args, ndim))

    def _positional_windows(
        self,
        extents: np.ndarray,
        axes: Sequence[int],
        positional: Sequence[Sequence[np.ndarray] | np.ndarray],
    ) -> Windows:
        starts, sizes = (_joined(rows, len(extents)) for rows in positional)
        if not starts.shape[1] == sizes.shape[1] == len(axes):
            raise ShapeError(
                f"The anchor and shape inputs must have one value for each of the {len(axes)} "
                f"sliced axes, got {starts.shape[1]} and {sizes.shape[1]}."
            )
        extent = extents[:, axes]
        # What is not valid is found out below; until then it may become whatever it likes.
        with np.errstate(invalid="ignore", over="ignore"):
            relative_start, relative_size = self.normalized_anchor, self.normalized_shape
            if relative_start and relative_size:
                # Sum before the only multiplication: fractions that add up to one reach the end.
                begins, ends = starts * extent, (starts + sizes) * extent
            else:
                begins = starts * extent if relative_start else starts
                ends = begins + (sizes * extent if relative_size else sizes)
            good = np.isfinite(begins) & np.isfinite(ends) & (ends >= begins)
        if not good.all():
            index, k = np.argwhere(~good)[0].tolist()
            _refuse_span(begins[index, k].item(), ends[index, k].item(), axes[k])
        anchors, shapes = np.zeros_like(extents), extents.copy()
        anchors[:, axes] = first = round_each(begins)
        shapes[:, axes] = round_each(ends) - first
        return anchors, shapes

    def _refuse(
        self,
        axes: Sequence[int],
        extents: np.ndarray,
        begins: Sequence[float],
        ends: Sequence[float],
    ) -> None:
        """Raise what is wrong with the coordinates of a sample."""
        for k, axis in enumerate(axes):
            extent = int(extents[axis])
            start = 0.0
            if self.start:
                start = begins[k] * extent if self.start == "rel_start" else begins[k]
            end = float(extent)
            if self.end:
                end = float(ends[k])
                if self.end in ("shape", "rel_shape") and not end >= 0:
                    raise ArgumentValueError(
                        f"`{self.end}` must not be negative, got {end:g} for axis {axis}."
                    )
                if self.end.startswith("rel_"):
                    end *= extent
                if self.end.endswith("shape"):
                    end += start
            if not (math.isfinite(start) and math.isfinite(end) and end >= start):
                _refuse_span(start, end, axis)

    def _coordinates(
        self, c: PlanContext, name: str, constant: tuple[float, ...] | None, count: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Values of a named argument, ``(samples, count)`` or ``(1, count)``, as integers or as
        fractions; the other has no columns.
        """
        if not name:
            return _NO_INTEGERS, _NO_FRACTIONS
        if constant is not None:
            return _constant_coordinates(name, constant, count)
        whole = not name.startswith("rel_")
        found = rows_of(c, name, np.int64 if whole else np.float64)
        if found.shape[1] == 1 < count:
            found = np.broadcast_to(found, (len(found), count))
        _check_count(name, found.shape[1], count)
        if whole:
            limited = np.minimum(np.maximum(found, -FARTHEST), FARTHEST)  # np.clip takes longer
            return as_contiguous(limited), _NO_FRACTIONS
        return _NO_INTEGERS, as_contiguous(found)

    def axes(self, args: Any, ndim: int) -> Sequence[int]:
        """The sliced axes of a sample, counted from the front."""
        if self._axes is not None:
            return self._axes
        asked = args.axes if self.axes_by_sample else self._asked_axes
        if isinstance(asked, str):
            asked = named_axes(asked, _implied_layout(ndim))
        return checked_axes(asked, ndim) if asked else range(ndim)


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
        return tuple(axes)
    return "WH" if names is None else str(names)


def _implied_layout(ndim: int | None) -> str:
    """Layout that axes of data without a layout are assumed to have, as in DALI."""
    return {2: "HW", 3: "HWC", 4: "DHWC"}.get(ndim or 0, "")


_NO_INTEGERS, _NO_FRACTIONS = np.empty((1, 0), np.int64), np.empty((1, 0), np.float64)


@lru_cache(maxsize=256)
def _constant_coordinates(
    name: str, constant: tuple[float, ...], count: int
) -> tuple[np.ndarray, np.ndarray]:
    values = constant * count if len(constant) == 1 else constant
    _check_count(name, len(values), count)
    if name.startswith("rel_"):
        return _NO_INTEGERS, np.array([values], np.float64).reshape(1, count)
    limited = [min(max(int(v), -FARTHEST), FARTHEST) for v in values]
    return np.array([limited], np.int64).reshape(1, count), _NO_FRACTIONS


def _check_count(name: str, found: int, count: int) -> None:
    if found != count:
        raise ShapeError(
            f"`{name}` must have one value for each of the {count} sliced axes, got {found}."
        )


def _row(coordinates: tuple[np.ndarray, np.ndarray], index: int) -> list[float]:
    """The coordinates of a sample, of whichever kind they are, as Python numbers."""
    found = coordinates[0] if coordinates[0].shape[1] else coordinates[1]
    row: list[float] = found[index if len(found) > 1 else 0].tolist()
    return row


def _joined(rows: Sequence[np.ndarray] | np.ndarray, count: int) -> np.ndarray:
    """Numbers of all samples, ``(samples, numbers)``: int64, or float64."""
    if not isinstance(rows, np.ndarray):
        if any(row.size != rows[0].size for row in rows):
            raise ShapeError("Samples have different numbers of coordinates.")
        rows = np.concatenate([row.reshape(1, -1) for row in rows])
    joined = rows.reshape(count, -1)
    if joined.dtype.kind == "i":
        return np.clip(joined.astype(np.int64), -FARTHEST, FARTHEST)
    return joined.astype(np.float64)


def _refuse_span(start: float, end: float, axis: int) -> None:
    """Raise what is wrong with a window between two coordinates."""
    if not (math.isfinite(start) and math.isfinite(end)):
        raise ArgumentValueError(
            f"The slice must have finite coordinates, got start {start} and end {end} "
            f"for axis {axis}."
        )
    raise ArgumentValueError(
        f"The end of the slice lies before its start: start {start:g}, end {end:g}, axis {axis}."
    )
