"""Addressing of a generated kernel: from each element of its output to those of its sources."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headrace.kernels.gpu.broadcast import merged_axes
from headrace.tensors.gpu.batch import (
    DeviceBatch,
    StridedBatch,
    are_contiguous,
    contiguous_strides,
    volumes,
)

if TYPE_CHECKING:
    from headrace.kernels.gpu.pointwise_text import Access

_LARGEST = (1 << 31) - 1


class SourceAddressing(NamedTuple):
    """Positions of the elements of all sources."""

    accesses: tuple[Access, ...]
    extents: np.ndarray | None
    """int64 ``(samples, axes)`` or ``(1, axes)``; `None` where no source is read by its place."""
    strides: tuple[np.ndarray | None, ...]
    """For each source that is read by its place int64 ``(samples, n)``, in elements, along the axes
    of its access."""
    wide: bool
    """True if positions or strides take more than 32 bits."""

    @property
    def axes(self) -> int:
        """Number of axes that the output is seen with."""
        return 1 if self.extents is None else int(self.extents.shape[1])


def reading(
    shapes: np.ndarray,
    sizes: np.ndarray,
    shape: tuple[int, ...] | None,
    sources: Sequence[DeviceBatch | StridedBatch],
) -> SourceAddressing:
    """Find how `sources` are read for an output of these shapes, which they broadcast to.

    `shapes`: int64 ``(samples, ndim)``.
    """
    if shape is not None:
        theirs = [None if isinstance(s, StridedBatch) else s.uniform_shape for s in sources]
        if None not in theirs:
            return _reading_of_one(shape, tuple(theirs))  # type: ignore[arg-type]
    strides = [
        s.strides // s.dtype.itemsize if isinstance(s, StridedBatch) else None for s in sources
    ]
    return _reading(shapes, sizes, [s.shapes for s in sources], strides)


@lru_cache(maxsize=1024)
def _reading_of_one(
    shape: tuple[int, ...], sources: tuple[tuple[int, ...], ...]
) -> SourceAddressing:
    whole = _one(shape)
    found = _reading(whole, volumes(whole), [_one(s) for s in sources], [None] * len(sources))
    for array in (found.extents, *found.strides):
        if array is not None:
            array.flags.writeable = False  # many threads share it
    return found


def _one(shape: tuple[int, ...]) -> np.ndarray:
    return np.array(shape, np.int64).reshape(1, len(shape))


def _reading(
    shapes: np.ndarray,
    sizes: np.ndarray,
    theirs: Sequence[np.ndarray],
    given: Sequence[np.ndarray | None],
) -> SourceAddressing:
    accesses: list[Access] = [() for _ in theirs]
    located: list[int] = []
    for k, (of_source, strides) in enumerate(zip(theirs, given, strict=True)):
        volume = sizes if of_source is shapes else volumes(of_source)
        if (volume == sizes).all() and (strides is None or are_contiguous(of_source, strides, 1)):
            accesses[k] = None
        elif (volume != 1).any():
            located.append(k)
    none: tuple[np.ndarray | None, ...] = (None,) * len(theirs)
    if not located:
        return SourceAddressing(tuple(accesses), None, none, False)
    merged = merged_axes(shapes, [_aligned(shapes, theirs[k], given[k]) for k in located])
    found = list(none)
    for k, strides in zip(located, merged.strides, strict=True):
        varies = np.flatnonzero((strides != 0).any(axis=0))
        accesses[k] = tuple(varies.tolist())
        found[k] = strides[:, varies]
    largest = max(int(sizes.max()), *(int(np.abs(s).max(initial=0)) for s in merged.strides))
    return SourceAddressing(tuple(accesses), merged.extents, tuple(found), largest > _LARGEST)


def _aligned(shapes: np.ndarray, theirs: np.ndarray, given: np.ndarray | None) -> np.ndarray:
    """Strides in elements along the output's axes; 0 where the source is the same."""
    strides = contiguous_strides(theirs, 1) if given is None else given
    found = np.zeros(shapes.shape, np.int64)
    found[:, shapes.shape[1] - theirs.shape[1] :] = np.where(theirs == 1, 0, strides)
    return found
