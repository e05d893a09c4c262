"""New shapes of all samples of a batch at once, for `reshape` and `reinterpret` on the GPU.

The arithmetic is that of `Reshaping.new_shape`, with an array in place of a number. A sample that
cannot have the shape wanted is given to that, so that the error is the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING

import numpy as np

from penstock.errors import ShapeError
from penstock.tensors.gpu.batch import volumes

if TYPE_CHECKING:
    from penstock.operators.generic.reshape import Reshaping
    from penstock.operators.support.operator import BatchContext

_ARGUMENTS = ("shape", "rel_shape", "src_dims")
_LARGEST = float(1 << 62)


def new_shapes(
    op: Reshaping, c: BatchContext, extents: np.ndarray, rows: Sequence[np.ndarray] | None
) -> np.ndarray:
    """Shapes of the outputs of samples of shapes `extents`, int64 ``(samples, axes)`` both.

    `rows` are the samples of the shape input, if there is one.

    Raises
    ------
    ShapeError, ArgumentValueError, OutOfRangeError
        As `Reshaping.new_shape` does, with the place of the sample; and where samples would get
        different numbers of axes.
    """
    with np.errstate(invalid="ignore", over="ignore"):
        wanted = _wanted(op, c, extents, rows)
    if wanted is None:
        return _one_by_one(op, c, extents, rows, range(c.size))
    shapes, wrong = wanted
    negative = shapes < 0
    wrong = wrong | (negative.sum(axis=1) > 1)
    if op.rank is not None and shapes.shape[1] != op.rank:
        wrong[:] = True
    known = np.where(negative, 1, shapes)
    bytes_each = volumes(extents) * op.source_size
    others = volumes(known)
    has_wildcard = negative.any(axis=1)
    wrong |= has_wildcard & (others == 0)
    rest = bytes_each // op.target.itemsize // np.maximum(others, 1)
    shapes = np.where(negative, rest[:, np.newaxis], shapes)
    wrong |= volumes(shapes) * op.target.itemsize != bytes_each
    wrong |= shapes.prod(axis=1, dtype=np.float64) > _LARGEST  # int64 would have wrapped around
    if wrong.any():
        _one_by_one(op, c, extents, rows, np.flatnonzero(wrong).tolist())
        raise AssertionError("a shape is rejected that is one")
    return shapes


def _one_by_one(
    op: Reshaping,
    c: BatchContext,
    extents: np.ndarray,
    rows: Sequence[np.ndarray] | None,
    samples: Sequence[int],
) -> np.ndarray:
    columns = {name: c.values(name) for name in _ARGUMENTS}
    found = []
    for index in samples:
        args = SimpleNamespace(**{name: values[index] for name, values in columns.items()})
        inputs = [] if rows is None else [rows[index]]
        try:
            found.append(op.new_shape(args, tuple(extents[index].tolist()), inputs))
        except Exception as error:
            raise c.located(error, index) from error
    counts = sorted({len(shape) for shape in found})
    if len(counts) > 1:
        raise ShapeError(
            "The samples of a batch come out with different numbers of axes "
            f"({', '.join(map(str, counts))}); all must have as many."
        )
    return np.array(found, np.int64).reshape(len(found), -1)


def _wanted(
    op: Reshaping, c: BatchContext, extents: np.ndarray, rows: Sequence[np.ndarray] | None
) -> tuple[np.ndarray, np.ndarray] | None:
    """Shapes with at most one negative extent, and samples that ask for what cannot be.

    `None` where samples do not ask for as many axes.
    """
    wrong = np.zeros(c.size, np.bool_)
    if rows is not None:
        if any(row.size != rows[0].size for row in rows):
            return None
        asked = np.concatenate([row.reshape(-1) for row in rows]).reshape(c.size, -1)
        return asked.astype(np.int64), wrong
    if op.absolute:
        shape = _numbers(c, "shape", np.int64)
        return None if shape is None else (shape, wrong)
    if op.mapped:
        axes = _numbers(c, "src_dims", np.int64)
        if axes is None:
            return None
        bad = (axes < -1) | (axes >= extents.shape[1])
        wrong |= bad.any(axis=1)
        sources = np.concatenate([extents, np.ones((c.size, 1), np.int64)], axis=1)
        # Axis -1 is the one put there.
        extents = np.take_along_axis(sources, np.where(bad, -1, axes), axis=1)
    if op.relative:
        return _scaled(op, c, extents, wrong)
    if op.target.itemsize != op.source_size:
        return _refitted(op, extents, wrong)
    return extents, wrong


def _scaled(
    op: Reshaping, c: BatchContext, extents: np.ndarray, wrong: np.ndarray
) -> tuple[np.ndarray, np.ndarray] | None:
    factors = _numbers(c, "rel_shape", np.float64)
    if factors is None:
        return None
    count, ndim = factors.shape[1], extents.shape[1]
    if op.mapped:
        wrong = wrong | (count != ndim)
    elif count > ndim:
        wrong = wrong | ((count > ndim + 1) | ~(factors[:, -1] < 0))
    if count > ndim + 1:
        return extents, np.ones_like(wrong)
    sources = np.concatenate([extents, np.ones((c.size, 1), np.int64)], axis=1)[:, :count]
    # DALI multiplies in float32 and rounds halves up.
    products = sources * factors.astype(np.float32).astype(np.float64)
    whole = np.floor(products.astype(np.float32).astype(np.float64) + 0.5)
    fits = (factors < 0) | (products < _LARGEST)
    wrong = wrong | ~fits.all(axis=1)
    return np.where((factors < 0) | ~fits, -1, whole).astype(np.int64), wrong


def _refitted(
    op: Reshaping, extents: np.ndarray, wrong: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    if not extents.shape[1]:
        return extents, np.ones_like(wrong)
    row_bytes = extents[:, -1] * op.source_size
    shapes = extents.copy()
    shapes[:, -1] = row_bytes // op.target.itemsize
    return shapes, wrong | (row_bytes % op.target.itemsize != 0)


def _numbers(c: BatchContext, name: str, dtype: type) -> np.ndarray | None:
    """An argument, ``(samples, values)``; `None` where samples have not as many values."""
    try:
        found = c.array(name, dtype)
    except (ShapeError, OverflowError):
        return None
    assert found is not None
    return found.reshape(c.size, -1)
