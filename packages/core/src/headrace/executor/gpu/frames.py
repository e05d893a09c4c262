"""Sequences on the GPU: their frames are a batch of their own for operators that know frames."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.errors import ArgumentValueError, ShapeError
from headrace.executor.cpu.frames import FrameLoop, common_count
from headrace.operators.support.batch_context import BatchContext
from headrace.operators.support.schema import Spec
from headrace.tensors.gpu.batch import DeviceBatch, StridedBatch, as_shapes, contiguous_strides
from headrace.tensors.gpu.queue import Queue

if TYPE_CHECKING:
    from numpy.typing import DTypeLike


class GpuFrames(FrameLoop):
    """An operator that takes frames, made into one that takes batches of sequences."""

    def infer(self, *inputs: Spec) -> tuple[Spec, ...]:
        """Specs of the output sequences."""
        outputs = super().infer(*inputs)
        # A sequence may be to the operator what a large frame is.
        self._takes_sequences = self.op.elementwise and not self.frame_args
        if self._takes_sequences:
            self.takes, self.returns_lazy = self.op.takes, self.op.returns_lazy  # type: ignore[misc]
        return outputs

    def gpu(self, c: Any, sequences: Any, *others: Any) -> Any:
        """Run all frames of all sequences as one batch, and fold its outputs."""
        if self._takes_sequences:
            return self.op.gpu(c, sequences, *others)
        axis = self.axis
        counts = self._counts(c, sequences, others)
        if not counts.all():
            self._check_empty(c, sequences.shapes, counts)
            if not counts.any():
                return c.empty(sequences.shapes, self._type_of_empty)
        context = FramesContext(c, self, sequences, counts)
        if self.repeats:
            frames = _repeated(sequences, counts)
        else:
            frames = _unfolded(sequences, axis, counts, c.queue)
        of_frames = [
            _others_of_frames(other, counts, c.queue, framed=framed)
            for other, framed in zip(others, self.framed, strict=True)
        ]
        results = self.op.gpu(context, frames, *of_frames)
        several = isinstance(results, tuple)
        folded = tuple(
            context.folded(r.materialise(c.queue)) for r in (results if several else (results,))
        )
        return folded if several else folded[0]

    def _counts(self, c: Any, sequences: Any, others: tuple[Any, ...]) -> np.ndarray:
        """Return the number of frames of each sequence, int64."""
        if self.repeats and True not in self.framed:
            values = [[len(v) for v in c.raw(name)] for name in self.frame_args]
            most: np.ndarray = np.max(np.array(values, np.int64), axis=0)
            return most
        if True not in self.framed:
            counts: np.ndarray = sequences.shapes[:, self.axis]
            return counts
        shapes = [None if self.repeats else _sample_shapes(sequences)]
        shapes += [
            _sample_shapes(other) if framed else None
            for other, framed in zip(others, self.framed, strict=True)
        ]
        found = []
        for index in range(c.size):
            try:
                each = [None if s is None else s[index] for s in shapes]
                found.append(common_count(each, self.axis))
            except ShapeError as error:
                raise c.located(error, index) from error
        return np.array(found, np.int64)

    def _check_empty(self, c: Any, shapes: np.ndarray, counts: np.ndarray) -> None:
        if self._type_of_empty is None or self.frame_args:
            index = int(np.flatnonzero(counts == 0)[0])
            shape = tuple(shapes[index].tolist())
            raise c.located(ShapeError(f"The sequence has no frames: its shape is {shape}."), index)


def _unfolded(sequences: DeviceBatch, axis: int, counts: np.ndarray, queue: Queue) -> DeviceBatch:
    """The frames of all sequences, one after the other."""
    if axis:  # frames are interleaved; move their axis to the front
        order = [axis, *(a for a in range(sequences.ndim) if a != axis)]
        sequences = StridedBatch.of(sequences).permuted(order).materialise(queue)
    owner = np.repeat(np.arange(len(counts)), counts)
    number = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
    step = contiguous_strides(sequences.shapes, sequences.dtype.itemsize)[:, 0]
    pointers = sequences.pointers[owner] + (number * step[owner]).astype(np.uint64)
    return DeviceBatch(
        sequences.runtime, sequences.owners, pointers, sequences.shapes[owner, 1:], sequences.dtype
    )


def _repeated(samples: DeviceBatch, counts: np.ndarray) -> DeviceBatch:
    """Each sample so many times, without a copy."""
    return samples.taken(np.repeat(np.arange(len(counts)), counts))


def _sample_shapes(batch: Any) -> list[tuple[int, ...]]:
    """The shapes of the samples of a batch on either device."""
    if isinstance(batch, DeviceBatch):
        return [tuple(shape) for shape in batch.shapes.tolist()]
    return [row.shape for row in batch.rows]


class _HostFrames:
    """Frames of samples in host memory, as a batch there."""

    dense = None
    segments = None

    def __init__(self, rows: list[np.ndarray]) -> None:
        self.rows = rows

    def __len__(self) -> int:
        return len(self.rows)


def _others_of_frames(batch: Any, counts: np.ndarray, queue: Queue, *, framed: bool) -> Any:
    """Return a further input frame by frame, on either device."""
    if isinstance(batch, DeviceBatch):
        return _unfolded(batch, 0, counts, queue) if framed else _repeated(batch, counts)
    repeated = zip(batch.rows, counts.tolist(), strict=True)
    if framed:
        return _HostFrames([frame for row, _ in repeated for frame in row])
    return _HostFrames([row for row, count in repeated for _ in range(count)])


class FramesContext(BatchContext):
    """The `BatchContext` of the frames of a batch of sequences.

    Outputs are laid out as sequences, so that folding them moves no data.
    """

    of_frames = True

    def __init__(
        self, whole: Any, loop: GpuFrames, sequences: DeviceBatch, counts: np.ndarray
    ) -> None:
        self._whole = whole
        self._loop = loop
        self._counts = counts
        self._begins = np.cumsum(self._counts) - self._counts
        self._frame_shapes = sequences.shapes
        if not loop.repeats:
            self._frame_shapes = np.delete(sequences.shapes, loop.axis, axis=1)
        self._owner = np.repeat(np.arange(len(self._counts)), self._counts)
        super().__init__(
            whole.node,
            whole.args,
            {},
            whole.queue,
            [whole.indices[k] for k in self._owner.tolist()],
            whole.seed,
            whole.iteration,
            threads=whole.threads,
        )

    def values(self, name: str) -> list[Any]:
        """Argument `name` of each frame."""
        if name not in self._loop.frame_args:
            each = self._whole.values(name)
            return [each[i] for i in self._owner.tolist()]
        convert = self._loop.op.schema.args[name].type.sample
        assert convert is not None
        return [convert(v) for v in self._per_frame(name)]

    def array(self, name: str, dtype: DTypeLike) -> np.ndarray | None:
        """Argument `name` of all frames as one array."""
        if name not in self._loop.frame_args:
            whole = self._whole.array(name, dtype)
            return None if whole is None else whole[self._owner]
        return np.stack(self._per_frame(name)).astype(dtype, copy=False)

    def _per_frame(self, name: str) -> list[np.ndarray]:
        found: list[np.ndarray] = []
        for values, count in zip(self._whole.raw(name), self._counts.tolist(), strict=True):
            if len(values) != count and len(values) != 1:
                raise ArgumentValueError(
                    f"Argument `{name}` has values for {len(values)} frames, but the sequence "
                    f"has {count}."
                )
            found += [np.asarray(v) for v in values] * (count if len(values) == 1 else 1)
        return found

    def empty(self, shapes: Any, dtype: DTypeLike, output: int = 0) -> DeviceBatch:
        """Memory for the frames of an output, those of a sequence side by side."""
        shapes = as_shapes(shapes, self.size)
        first = self._firsts(shapes)
        different = (shapes != first[self._owner]).any(axis=1)
        if different.any():
            frame = int(np.flatnonzero(different)[0])
            sequence = int(self._owner[frame])
            raise self._whole.located(
                ShapeError(
                    "The frames of one sequence came out with different shapes: "
                    f"{tuple(first[sequence].tolist())} and {tuple(shapes[frame].tolist())}. All "
                    "frames of a sequence must keep one shape."
                ),
                sequence,
            )
        sequences = self._whole.empty(np.column_stack([self._counts, first]), dtype, output)
        return _unfolded(sequences, 0, self._counts, self.queue)

    def temp(self, shapes: Any, dtype: DTypeLike) -> DeviceBatch:
        """Return memory for intermediate results."""
        return self.queue.empty(as_shapes(shapes, self.size), dtype)

    def source(self, index: int) -> str:
        """Return the file that the sequence of frame `index` was read from."""
        return self._whole.source(int(self._owner[index]))  # type: ignore[no-any-return]

    def located(
        self, error: BaseException, index: int | None = None, raised: str = ""
    ) -> BaseException:
        """`error` with the place of the sequence of frame `index`."""
        own = None if index is None else int(self._owner[index])
        return self._whole.located(error, own, raised)  # type: ignore[no-any-return]

    def _firsts(self, of_frames: np.ndarray) -> np.ndarray:
        """Of a shape a frame, the first of each sequence; without frames, that of the input."""
        if self._counts.all():
            firsts: np.ndarray = of_frames[self._begins]
            return firsts
        first: np.ndarray = of_frames[np.minimum(self._begins, self.size - 1)].copy()
        first[self._counts == 0] = self._frame_shapes[self._counts == 0]
        return first

    def folded(self, frames: DeviceBatch) -> DeviceBatch:
        """The sequences that `frames` make up."""
        begins = np.minimum(self._begins, self.size - 1)
        step = frames.sizes() * frames.dtype.itemsize
        expected = frames.pointers[begins][self._owner].astype(np.int64)
        number = np.arange(self.size) - np.repeat(self._begins, self._counts)
        if (frames.pointers.astype(np.int64) != expected + number * step).any():
            # Not made by `empty`: a view of the input, say.
            packed = self.empty(frames.shapes, frames.dtype)
            self.queue.copy_strided(StridedBatch.of(frames), packed)
            frames = packed
        shapes = np.column_stack([self._counts, self._firsts(frames.shapes)])
        sequences = DeviceBatch(
            frames.runtime, frames.owners, frames.pointers[begins], shapes, frames.dtype
        )
        axis = self._loop.axis
        if not axis:
            return sequences
        order = list(range(1, sequences.ndim))
        order.insert(axis, 0)
        return StridedBatch.of(sequences).permuted(order).materialise(self.queue)
