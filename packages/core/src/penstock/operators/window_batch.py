"""Windows of all samples of a batch at once, for operators on the GPU.

The arithmetic is that of `CropWindow`, `SliceWindow` and `OutOfBounds`, with an array in place of a
number, operation for operation. A sample that has no valid window is given to those classes, so
that the error is theirs; and so are all samples of a batch where arguments differ in length from
sample to sample.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock._later import later
from penstock.errors import ShapeError
from penstock.operators.batch_arguments import scalars
from penstock.operators.vector_arguments import vectors
from penstock.operators.window_arithmetic import (
    FARTHEST,
    Window,
    round_each,
    whole_each,
)
from penstock.operators.window_crop import CROP_ARGS
from penstock.operators.window_slice import SLICE_ARGS
from penstock.tensors.gpu.batch import plain

if TYPE_CHECKING:
    from penstock.kernels.gpu import slices as _slice_kernels
    from penstock.kernels.gpu import windows as _windows
    from penstock.operators.operator import BatchContext
    from penstock.operators.window_bounds import OutOfBounds
    from penstock.operators.window_crop import CropWindow, CutAxis
    from penstock.operators.window_slice import SliceWindow
else:
    _windows = later("penstock.kernels.gpu.windows")
    _slice_kernels = later("penstock.kernels.gpu.slices")
Windows = tuple[np.ndarray, np.ndarray]
"""Anchors and shapes, int64 ``(samples, ndim)`` each."""
_Found = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Anchors, shapes, and which samples have no valid window."""

_CROP_NAMES = tuple(a.name for a in CROP_ARGS if a.per_sample)
_SLICE_NAMES = tuple(a.name for a in SLICE_ARGS if a.per_sample)


def differ(window: CropWindow) -> bool:
    """Whether windows of samples of the same extents may differ: they have arguments of their own.

    Where they do not, one row of extents is enough for samples that are all alike.
    """
    return any(cut.size is None or cut.place is None for cut in window.cut)


def crop_windows(window: CropWindow, c: BatchContext, extents: np.ndarray) -> Windows:
    """The windows that `window` describes in samples of these extents, int64 ``(samples, ndim)``.

    Raises
    ------
    ArgumentValueError
        As `CropWindow` does, with the place of the sample.
    """

    def of_sample(index: int, args: Any) -> Window:
        return window(args, tuple(extents[index].tolist()))

    return _checked(c, _crops(window, c, extents), _CROP_NAMES, of_sample, extents)


def slice_windows(
    window: SliceWindow,
    c: BatchContext,
    extents: np.ndarray,
    *positional: Sequence[np.ndarray] | np.ndarray,
) -> Windows:
    """The windows that `window` describes in samples of these extents, int64 ``(samples, ndim)``.

    Without arguments that differ by sample, one row is enough for samples that are all alike.
    `positional` holds the anchor and shape inputs, one row a sample, if there are any, or one array
    for each.

    Raises
    ------
    ShapeError, ArgumentValueError, OutOfRangeError
        As `SliceWindow` does, with the place of the sample.
    """

    def of_sample(index: int, args: Any) -> Window:
        rows = [values[index] for values in positional]
        return window(args, tuple(extents[index].tolist()), *rows)

    found = _slices(window, c, extents, positional)
    if found is None and len(extents) < c.size:  # they are looked at one by one
        extents = np.repeat(extents, c.size, axis=0)
    return _checked(c, found, _SLICE_NAMES, of_sample, extents)


def settled_windows(
    bounds: OutOfBounds,
    c: BatchContext,
    anchors: np.ndarray,
    shapes: np.ndarray,
    extents: np.ndarray,
) -> _Found:
    """The windows after the policy, and for which samples they leave the data.

    Arrays have a row a sample, or one for samples that are all alike.

    Raises
    ------
    OutOfRangeError, ShapeError
        As `OutOfBounds.settle` does, with the place of the sample.
    """
    outside = np.empty(len(anchors), np.bool_)
    if not _windows.leaves(plain(anchors), plain(shapes), plain(extents), outside):
        return anchors, shapes, outside
    if bounds.policy == "trim_to_shape":
        first = np.clip(anchors, 0, extents)
        return first, np.clip(anchors + shapes, 0, extents) - first, np.zeros_like(outside)
    wrong = outside
    if bounds.policy != "error":
        wrong = outside & (extents == 0).any(axis=1) & (shapes != 0).all(axis=1)
        if bounds.policy == "constant" or not wrong.any():
            return anchors, shapes, outside
    index = int(np.flatnonzero(wrong)[0])
    try:
        bounds.settle(*(tuple(a[index].tolist()) for a in (anchors, shapes, extents)))
    except Exception as error:
        raise c.located(error, index) from error
    raise AssertionError("a window is accepted that is not one")


def _checked(
    c: BatchContext,
    found: _Found | None,
    names: Sequence[str],
    of_sample: Callable[[int, Any], Window],
    extents: np.ndarray,
) -> Windows:
    """`found`, unless a sample has no valid window, or all have to be looked at one by one."""
    if found is not None and not np.count_nonzero(found[2]):
        return found[0], found[1]
    columns = [c.values(name) for name in names]
    wrong = range(c.size) if found is None else np.flatnonzero(found[2]).tolist()
    anchors, shapes = np.zeros_like(extents), np.zeros_like(extents)
    for index in wrong:
        values = [column[index] for column in columns]
        try:
            anchor, shape = of_sample(
                index, SimpleNamespace(**dict(zip(names, values, strict=True)))
            )
        except Exception as error:
            raise c.located(error, index) from error
        anchors[index] = np.clip(anchor, -FARTHEST, FARTHEST)
        shapes[index] = np.clip(shape, 0, FARTHEST)
    assert found is None, "a sample is rejected that has a window"
    return anchors, shapes


def _crops(window: CropWindow, c: BatchContext, extents: np.ndarray) -> _Found | None:
    count = len(extents)
    wrong = np.zeros(count, np.bool_)
    axes, sizes, places = _constant_cut(window.cut)
    if differ(window):
        by_sample = None
        if window.sized_by_sample:
            by_sample = vectors(c, "crop", 3)
            if by_sample is None:
                by_sample = vectors(c, "crop", 2)
                if by_sample is None:
                    return None
                by_sample = np.concatenate([np.zeros((c.size, 1)), by_sample], axis=1)
            wrong |= ~(np.isfinite(by_sample) & (by_sample >= 0)).all(axis=1)
        sizes, places = (np.repeat(given, count, axis=1) for given in (sizes, places))
        for k, (_, slot, size, size_name, place, place_name) in enumerate(window.cut):
            if size is None:
                values = by_sample[:, slot] if by_sample is not None else _numbers(c, size_name)
                wrong |= ~(np.isfinite(values) & (values >= 0))
                sizes[k] = whole_each(values)
            if place is None:
                places[k] = _numbers(c, place_name)
    extents = plain(extents)
    anchors, shapes = np.empty_like(extents), np.empty_like(extents)
    _windows.cut_windows(extents, axes, sizes, places, window.truncates, anchors, shapes, wrong)
    return anchors, shapes, wrong


@lru_cache(maxsize=256)
def _constant_cut(cut: tuple[CutAxis, ...]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Axes, and the extents and positions of windows along them: ``(axes, 1)``, 0 if not known."""
    sizes = np.array([[min(c.size or 0, FARTHEST)] for c in cut], np.int64)
    places = np.array([[c.place or 0.0] for c in cut], np.float64)
    axes = np.array([c.axis for c in cut], np.int64)
    return axes, sizes.reshape(-1, 1), places.reshape(-1, 1)


def _numbers(c: BatchContext, name: str) -> np.ndarray:
    found = scalars(c, name, np.float64)
    assert found is not None
    return found


def _slices(
    window: SliceWindow,
    c: BatchContext,
    extents: np.ndarray,
    positional: Sequence[Sequence[np.ndarray] | np.ndarray],
) -> _Found | None:
    axes = _axes(window, c, extents.shape[1])
    if axes is None:
        return None
    if not positional:
        return _named_slices(window, c, extents, axes)
    extent = extents[:, axes]
    # What is not valid is found out below; until then it may become whatever it likes.
    with np.errstate(invalid="ignore", over="ignore"):
        found = _positional_spans(window, extent, positional)
        if found is None:
            return None
        start, end, wrong = found
        wrong = wrong | ~(np.isfinite(start) & np.isfinite(end) & (end >= start))
    first = round_each(start)
    anchors, shapes = np.zeros_like(extents), extents.copy()
    anchors[:, axes] = first
    shapes[:, axes] = round_each(end) - first
    return anchors, shapes, np.asarray(wrong.any(axis=1))


def _axes(window: SliceWindow, c: BatchContext, ndim: int) -> list[int] | None:
    """The sliced axes; `None` if samples have others, or there are none of that name."""
    args = c.args
    if window.axes_by_sample:
        asked = c.values("axes")
        if any(axes != asked[0] for axes in asked):
            return None
        args = SimpleNamespace(axes=asked[0])
    try:
        return list(window.axes(args, ndim))
    except Exception:  # raised once more, with the sample
        return None


def _positional_spans(
    window: SliceWindow,
    extent: np.ndarray,
    positional: Sequence[Sequence[np.ndarray] | np.ndarray],
) -> _Found | None:
    start, size = (_joined(rows, extent.shape) for rows in positional)
    if start is None or size is None:
        return None
    relative_start, relative_size = window.normalized_anchor, window.normalized_shape
    if relative_start and relative_size:
        return start * extent, (start + size) * extent, np.zeros(extent.shape, np.bool_)
    if relative_start:
        start = start * extent
    end = start + (size * extent if relative_size else size)
    return start, end, np.zeros(extent.shape, np.bool_)


def _joined(rows: Sequence[np.ndarray] | np.ndarray, shape: tuple[int, ...]) -> np.ndarray | None:
    """Rows of numbers as one array, unless they are not of this shape together."""
    if isinstance(rows, np.ndarray):
        joined = rows
    elif any(row.size != shape[1] for row in rows):
        return None
    else:
        joined = np.concatenate([row.reshape(-1) for row in rows])
    if joined.size != math.prod(shape):
        return None
    joined = joined.reshape(shape)
    if joined.dtype.kind == "i":
        return np.clip(joined.astype(np.int64), -FARTHEST, FARTHEST)
    return joined.astype(np.float64)


def _named_slices(
    window: SliceWindow, c: BatchContext, extents: np.ndarray, axes: Sequence[int]
) -> _Found | None:
    begins = _coordinates(c, window.start, window.constant_start, len(axes))
    ends = _coordinates(c, window.end, window.constant_end, len(axes))
    if begins is None or ends is None:
        return None
    extents = plain(extents)
    anchors, shapes = np.empty_like(extents), np.empty_like(extents)
    wrong = np.empty(len(extents), np.bool_)
    _slice_kernels.slice_spans(
        extents,
        _axes_array(tuple(axes)),
        _slice_kernels.BEGINS[window.start],
        *begins,
        _slice_kernels.ENDS[window.end],
        *ends,
        FARTHEST,
        anchors,
        shapes,
        wrong,
    )
    return anchors, shapes, wrong


@lru_cache(maxsize=256)
def _axes_array(axes: tuple[int, ...]) -> np.ndarray:
    return np.array(axes, np.int64)


_NO_INTEGERS, _NO_FRACTIONS = np.empty((1, 0), np.int64), np.empty((1, 0), np.float64)


def _coordinates(
    c: BatchContext, name: str, constant: tuple[float, ...] | None, count: int
) -> tuple[np.ndarray, np.ndarray] | None:
    """Values of a named argument, ``(samples, count)`` or ``(1, count)``, as integers or fractions;
    `None` where they are not as many as axes.
    """
    if not name:
        return _NO_INTEGERS, _NO_FRACTIONS
    if constant is not None:
        return _constant_coordinates(constant, count, whole=not name.startswith("rel_"))
    whole = not name.startswith("rel_")
    try:
        found = vectors(c, name, count, np.int64 if whole else np.float64, repeat=True)
    except ShapeError:
        return None
    if found is None:
        return None
    if whole:
        return plain(np.clip(found, -FARTHEST, FARTHEST)), _NO_FRACTIONS
    return _NO_INTEGERS, plain(found)


@lru_cache(maxsize=256)
def _constant_coordinates(
    constant: tuple[float, ...], count: int, *, whole: bool
) -> tuple[np.ndarray, np.ndarray] | None:
    if len(constant) not in (1, count):
        return None
    values = constant if len(constant) == count else constant * count
    if whole:
        limited = [min(max(int(v), -FARTHEST), FARTHEST) for v in values]
        return np.array([limited], np.int64).reshape(1, count), _NO_FRACTIONS
    return _NO_INTEGERS, np.array([values], np.float64).reshape(1, count)
