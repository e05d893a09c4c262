"""Messages between trainer and workers, and batches on their way through Ray's object store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from headrace.executor.cpu.batch import BatchBuffer
from headrace.executor.cpu.shape_statistics import ShapeStatistics
from headrace.operators.support.schema import Spec
from headrace.plugin.ray.store_memory import borrowed

if TYPE_CHECKING:
    from headrace.executor.bad_samples import BadSample
    from headrace.executor.packed_error import PackedError


class PackedBatch(NamedTuple):
    """One edge's batch: an array that Ray's store takes, and gives back, in one piece."""

    spec: Spec
    values: np.ndarray
    """All samples of one shape, outermost axis first; or the elements of all, one after another."""
    shapes: np.ndarray | None = None
    """Shape of each sample, where they differ."""
    sources: Sequence[str] | None = None

    @classmethod
    def of(cls, buffer: BatchBuffer) -> PackedBatch:
        """Pack a finished batch; its memory must stay as it is until the result is stored."""
        buffer.wait()
        spec = buffer.spec._replace(ndim=buffer.ndim)
        dense = buffer.dense
        if dense is not None:
            return cls(spec, dense, None, buffer.sources)
        rows: list[np.ndarray] = [row for row in buffer.rows if row is not None]
        shapes = {row.shape for row in rows}
        if len(shapes) == 1:
            return cls(spec, np.stack(rows), None, buffer.sources)
        flat = np.concatenate([np.zeros(0, buffer.dtype), *(row.ravel() for row in rows)])
        return cls(spec, flat, np.array([row.shape for row in rows], np.int64), buffer.sources)

    @property
    def nbytes(self) -> int:
        """Bytes of the samples."""
        return int(self.values.nbytes)

    def part(self, count: int) -> PackedBatch:
        """The first `count` samples."""
        if self.shapes is None:
            return self._replace(values=self.values[:count])
        shapes = self.shapes[:count]
        return self._replace(values=self.values[: int(shapes.prod(1).sum())], shapes=shapes)

    def buffer(self, own: np.ndarray | None = None) -> BatchBuffer:
        """The batch in the engine's form; `own`: its values, for who may write to them."""
        values = borrowed(self.values) if own is None else own
        if self.shapes is None:
            made = BatchBuffer.of_values(values, self.spec, ShapeStatistics())
        else:
            made = BatchBuffer(len(self.shapes), self.spec, ShapeStatistics())
            ends = np.cumsum(self.shapes.prod(1))
            parts = zip(self.shapes.tolist(), [0, *ends[:-1].tolist()], ends.tolist(), strict=True)
            made.adopt_rows(range(len(self.shapes)), [values[a:b].reshape(s) for s, a, b in parts])
        made.sources = self.sources
        return made


class Task(NamedTuple):
    """One iteration to be carried out."""

    ticket: int
    number: int
    size: int
    entries: list[list[int]]
    """Entries that each reader drew, in the order of the workers' readers."""
    fed: list[PackedBatch]
    """Batches of external sources, in the order of the workers' fed nodes."""


class Result(NamedTuple):
    """Outcome of a task: batches, or an error; or a request for further entries of the readers."""

    ticket: int
    batches: list[PackedBatch]
    error: PackedError | None = None
    wanted: int = 0
    """Number of entries wanted in place of bad ones; nothing else is told then."""
    skipped: int = 0
    draw_numbers: list[int] | None = None
    replacements: Mapping[int, int] | None = None
    """For each failed sample the good one in its place; the trainer uses it, too."""
    bad_samples: tuple[BadSample, ...] = ()
    seconds: float = 0.0
    """Time that the worker spent on it, and not on others or waiting."""

    @property
    def nbytes(self) -> int:
        """Bytes of the batches."""
        return sum(batch.nbytes for batch in self.batches)


class WorkerAddress(NamedTuple):
    """Whereabouts of a worker."""

    node_id: str
    address: str
    host: str
    pid: int

    def __str__(self) -> str:
        return f"node {self.address} ({self.host}, id {self.node_id[:12]}), process {self.pid}"


class Graph(NamedTuple):
    """Everything that a worker must know of a pipeline."""

    nodes: list[Any]
    outputs: list[Any]
    seeds: list[Any]
    """Of each node, `None` for those that draw nothing."""
    readers: list[Any]
    metas: list[dict[str, int]]
    """`Reader.meta` of each."""
    fuse: bool
    on_bad_sample: str
    folder: str
    variables: dict[str, str]
    """Environment variables of the engine."""
