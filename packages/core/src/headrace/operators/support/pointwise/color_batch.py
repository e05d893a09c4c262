"""Batches on the GPU that are functions of the pixels of other batches, not computed yet."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headrace.kernels.gpu import color as _color
from headrace.kernels.gpu import color_steps as _steps
from headrace.kernels.gpu import color_text as _text
from headrace.kernels.gpu import pointwise_terms as _terms
from headrace.tensors.gpu.batch import DeviceBatch, LazyBatch, StridedBatch
from headrace.tensors.gpu.queue import Queue

if TYPE_CHECKING:
    from headrace.kernels.gpu.color_steps import Step
    from headrace.kernels.gpu.pointwise_terms import Term

_MOST_STEPS = 16
_LARGEST_ITEM_BYTES = 4


class MappedBatch(LazyBatch):
    """A lazy batch that itself computes functions of its elements."""

    def mapped(self, term: Term, numbers: tuple[np.ndarray, ...]) -> LazyBatch | None:
        """The lazy batch of `term`, of source 0, with a row a sample of each of `numbers`.

        `None` where that is better another kernel's.
        """
        raise NotImplementedError


class ColorBatch(MappedBatch):
    """A lazy batch: a chain of steps, each of which makes pixels out of pixels, done by one kernel.

    An operator that takes it over does `steps` with the pixels of `source`, as it reads them:
    extents are the same, but for the number of channels. Between steps pixels are rounded to the
    type that they would have had in memory.

    `source`: the batch that is read, ``(..., H, W, C)``. `steps`: what is done. `numbers`: for each
    array of numbers that the steps have, one row a sample.
    """

    __slots__ = ("dtype", "numbers", "shapes", "source", "steps")

    def __init__(
        self,
        source: DeviceBatch | StridedBatch,
        steps: tuple[Step, ...],
        numbers: tuple[np.ndarray, ...],
        shapes: np.ndarray,
    ) -> None:
        self.source = source
        self.steps = steps
        self.numbers = numbers
        self.shapes = shapes
        self.dtype = steps[-1].dtype

    def mapped(self, term: Term, numbers: tuple[np.ndarray, ...]) -> ColorBatch | None:
        """The chain followed by `term` of every element; `None` if that is another kernel's."""
        if not reads_elements(term):
            return None
        step = _steps.PerChannel(term, len(numbers), self.steps[-1].made)
        return self.then(step, numbers, self.shapes)

    def then(
        self, step: Step, numbers: tuple[np.ndarray, ...], shapes: np.ndarray
    ) -> ColorBatch | None:
        """The lazy batch with one more step; `None` where it is better to begin a new one."""
        if len(self.steps) == _MOST_STEPS or step.dtype.itemsize > _LARGEST_ITEM_BYTES:
            return None
        return ColorBatch(self.source, (*self.steps, step), self.numbers + numbers, shapes)

    def for_reader(self) -> _color.PixelColors | None:
        """The steps, for a kernel that does them with the pixels of `source` as it reads them.

        `None` where it cannot: results are to have the type and the channels, three, side by side,
        of what was read.
        """
        source = self.source
        if not len(self) or (source.shapes[:, -1] != 3).any():
            return None
        if isinstance(source, StridedBatch) and (
            (source.strides[:, -1] != source.dtype.itemsize).any()
        ):
            return None
        body = _text.color_body(source.dtype, 3, self.steps)
        return _color.PixelColors(body, self.numbers) if body.in_place else None

    def materialise(self, queue: Queue) -> DeviceBatch:
        """The samples in device memory: one launch."""
        source = self.source
        if isinstance(source, StridedBatch) and not _color.fits(source):
            source = source.materialise(queue)
        out = queue.empty(self.extents, self.dtype, len(self))
        if len(self):
            body = _text.color_body(source.dtype, int(source.shapes[0, -1]), self.steps)
            _color.compute(queue, body, source, self.numbers, out)
        return out


def reads_elements(term: Term) -> bool:
    """True if `term` is a function of one element, and of numbers, of small types."""
    found = list(_terms.nodes(term))
    sources = [node for node in found if isinstance(node, _terms.Source)]
    return (
        len(sources) == 1
        and sources[0].index == 0
        and max(sources[0].dtype.itemsize, term.dtype.itemsize) <= _LARGEST_ITEM_BYTES
        and not any(isinstance(node, _terms.Fault) for node in found)
    )
