"""Batches on the GPU that are a function of each element of other batches, not computed yet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from headrace.kernels.gpu import pointwise as _kernels
from headrace.kernels.gpu import pointwise_terms as _terms
from headrace.operators.support.pointwise.color_batch import MappedBatch
from headrace.tensors.gpu.batch import DeviceBatch, LazyBatch, StridedBatch
from headrace.tensors.gpu.faults import watched
from headrace.tensors.gpu.queue import Queue
from headrace.tensors.gpu.traced import traced

if TYPE_CHECKING:
    from headrace.kernels.gpu.pointwise_terms import Term
    from headrace.tensors.gpu.faults import Fault
_DEEPEST = 128
_MOST_SOURCES = 32
_NEAR_BYTES = 32


class PointwiseBatch(LazyBatch):
    """A lazy batch: one term, computed for every element by one kernel.

    An operator that takes it over computes `term` where it would have read elements: `pointwise`
    does, and so can any kernel that is generated around a term (see
    `headrace.kernels.gpu.pointwise_text`). The term rounds to every type that the elements would
    have had in memory on the way.

    `term`: what is computed. `sources`: the batches that the term reads; the shapes of each sample
    broadcast to the result's. `numbers`: for each number that the term reads, an array of one value
    a sample. `faults`: for each division that may fail, the error to be raised.
    """

    __slots__ = ("dtype", "faults", "numbers", "shapes", "sources", "term")

    def __init__(
        self,
        term: Term,
        sources: tuple[DeviceBatch | StridedBatch, ...],
        numbers: tuple[np.ndarray, ...],
        faults: tuple[Fault, ...],
        shapes: np.ndarray,
    ) -> None:
        self.term = term
        self.sources = sources
        self.numbers = numbers
        self.faults = faults
        self.shapes = shapes
        self.dtype = term.dtype

    @property
    def uniform_shape(self) -> tuple[int, ...] | None:
        """The shape that all samples have; `None` if they differ (or there are none)."""
        for source in self.sources:
            if source.shapes is self.shapes:  # it has found out already, or remembers it now
                return source.uniform_shape
        return super().uniform_shape

    def materialise(self, queue: Queue) -> DeviceBatch:
        """The samples in device memory: one launch."""
        out = queue.empty(self.extents, self.dtype, len(self))
        if not self.faults:
            _kernels.compute(queue, self.term, self.sources, self.numbers, out)
            return out
        with watched(queue, self.faults) as words:
            _kernels.compute(queue, self.term, self.sources, self.numbers, out, words)
        return out


TAKEN = (PointwiseBatch, MappedBatch, StridedBatch)
"""Recipes that `pointwise` takes over."""


def pointwise(
    queue: Queue,
    term: Term,
    inputs: Sequence[LazyBatch],
    shapes: np.ndarray,
    numbers: tuple[np.ndarray, ...] = (),
    faults: tuple[Fault, ...] = (),
) -> LazyBatch:
    """The lazy batch for `term` of batches, some of which may be lazy themselves.

    `inputs`: device memory, dense or seen through strides, or lazy batches. `shapes`: int64
    ``(samples, ndim)``, which those of the inputs broadcast to.
    """
    only = inputs[0]
    if (
        len(inputs) == 1
        and isinstance(only, MappedBatch)
        and not faults
        and (only.shapes is shapes or np.array_equal(only.shapes, shapes))
    ):
        further = only.mapped(term, numbers)
        if further is not None:
            return further
    sources: list[DeviceBatch | StridedBatch] = []

    def place(batch: DeviceBatch | StridedBatch) -> Term:
        for k, known in enumerate(sources):
            if known is batch:
                return _terms.source(k, batch.dtype)
        sources.append(batch)
        return _terms.source(len(sources) - 1, batch.dtype)

    own_numbers, own_faults = tuple(range(len(numbers))), tuple(range(len(faults)))
    leaves: list[Term] = []
    for batch in inputs:
        if isinstance(batch, PointwiseBatch):
            if _is_to_be_taken_over(batch, term, shapes, len(sources)):
                theirs = (
                    tuple(place(s) for s in batch.sources),
                    tuple(range(len(numbers), len(numbers) + len(batch.numbers))),
                    tuple(range(len(faults), len(faults) + len(batch.faults))),
                )
                leaves.append(_terms.substituted(batch.term, *theirs))
                numbers += batch.numbers
                faults += batch.faults
                continue
            batch = batch.materialise(queue)
        elif isinstance(batch, MappedBatch) or (
            isinstance(batch, StridedBatch) and not _goes_by_near_elements(batch)
        ):
            batch = batch.materialise(queue)
        leaves.append(place(batch))  # type: ignore[arg-type]
    whole = _terms.substituted(term, tuple(leaves), own_numbers, own_faults)
    return PointwiseBatch(whole, tuple(sources), numbers, faults, shapes)


def _is_to_be_taken_over(
    batch: PointwiseBatch, term: Term, shapes: np.ndarray, sources: int
) -> bool:
    """True if computing `batch` on the fly takes no more work than computing it beforehand."""
    if batch.term.depth + term.depth > _DEEPEST or sources + len(batch.sources) > _MOST_SOURCES:
        return False
    return batch.shapes is shapes or np.array_equal(batch.shapes, shapes)


def _goes_by_near_elements(batch: StridedBatch) -> bool:
    """True if neighbours along the last axis lie in the same cache line.

    Otherwise each would cost a whole piece, and a copy that goes by blocks is faster.
    """
    return _are_near(batch.shapes, batch.strides)


@traced
def _are_near(shapes: np.ndarray, strides: np.ndarray) -> bool:
    step = np.zeros(len(shapes), np.int64)
    for axis in range(shapes.shape[1]):
        np.copyto(step, strides[:, axis], where=shapes[:, axis] > 1)
    return bool((np.abs(step) <= _NEAR_BYTES).all())
