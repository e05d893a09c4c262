"""Tasks of source workers, and their execution: calls of the source, whatever its form."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from headrace.operators.support.external.callback import Callback, cycle_policy, kind_of
from headrace.operators.support.external.data import per_output
from headrace.operators.support.external.parallel.wire_format import OutputSamples, unpack
from headrace.types import BatchInfo, DALIDataType, SampleInfo


@dataclass(frozen=True, slots=True)
class BatchTask:
    """A whole batch of a function of the position."""

    iteration: int
    epoch: int
    plan: Any = None
    """Plan that the source made for the batch, if it plans."""

    def __str__(self) -> str:
        return f"iteration {self.iteration} of epoch {self.epoch}"


@dataclass(frozen=True, slots=True)
class SamplesTask:
    """Samples `first` to `stop` of a batch of `size`."""

    first: int
    stop: int
    size: int
    iteration: int
    epoch: int

    def __str__(self) -> str:
        last = self.stop - 1
        which = f"sample {last}" if last == self.first else f"samples {self.first} to {last}"
        return f"{which} of iteration {self.iteration} of epoch {self.epoch}"


@dataclass(frozen=True, slots=True)
class NextTask:
    """Request for the next item of a source that only goes forward."""

    shard: int
    size: int
    iteration: int
    epoch: int

    def __str__(self) -> str:
        return f"what is next in iteration {self.iteration} of epoch {self.epoch}"


@dataclass(frozen=True, slots=True)
class RewindTask:
    """Begin anew."""

    shard: int

    def __str__(self) -> str:
        return "a new beginning"


@dataclass(frozen=True, slots=True)
class ResumeTask:
    """Go to where the source stood at a checkpoint."""

    shard: int
    passes: int
    """Times that it was started over."""
    taken: int
    """Items taken from it since."""

    def __str__(self) -> str:
        return f"to take {self.taken} times, as before the checkpoint"


Task = BatchTask | SamplesTask | NextTask | RewindTask | ResumeTask


@dataclass(frozen=True, slots=True)
class Traits:
    """Properties of a source that are known without asking it for data."""

    kind: str
    """``"iterable"``, ``"function"`` or ``"position"``."""
    cycle: Any
    batch: bool
    batch_info: bool
    num_outputs: int | None
    dtypes: tuple[DALIDataType | None, ...]
    """Element types that Python's numbers get in each output."""
    shards: int
    """Into how many iterables the source can be divided; 0 if it cannot."""
    plans: bool
    """True if the source plans in the main process what each batch is made of."""
    bytes_per_sample: int = 0
    """The user's guess."""

    @property
    def indexed(self) -> bool:
        """True if any worker can be asked for any batch at any time."""
        return self.kind == "position"


def traits_of(
    source: Any,
    *,
    cycle: Any,
    batch: bool,
    batch_info: bool,
    num_outputs: int | None,
    dtypes: tuple[DALIDataType | None, ...],
    bytes_per_sample: int,
) -> Traits:
    """Find the properties of `source`."""
    cycle_policy(cycle)
    kind = kind_of(source, cycle)
    divided = kind == "iterable" and batch and callable(getattr(source, "iterate_part", None))
    return Traits(
        kind=kind,
        cycle=cycle,
        batch=batch,
        batch_info=batch_info,
        num_outputs=num_outputs,
        dtypes=dtypes,
        shards=int(source.num_parts) if divided else 0,
        plans=kind == "position" and batch and callable(getattr(source, "plan_batch", None)),
        bytes_per_sample=bytes_per_sample,
    )


class _Shard:
    """One of the iterables that a source can be divided into."""

    def __init__(self, source: Any, number: int) -> None:
        self._iterate = functools.partial(source.iterate_part, number)
        begin_at_pass = getattr(source, "begin_at_pass", None)
        if begin_at_pass is not None:
            self.begin_at_pass = functools.partial(begin_at_pass, part=number)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._iterate())


class SourceRunner:
    """Does tasks of one source, in the worker."""

    def __init__(self, source: Any, traits: Traits) -> None:
        self._source = source
        self._traits = traits
        self._callbacks: dict[int, Callback] = {}
        self.at: int | None = None
        """Position in its batch of the sample that is being made, where samples are."""
        self.bytes_per_sample = traits.bytes_per_sample

    def _callback(self, shard: int = 0) -> Callback:
        callback = self._callbacks.get(shard)
        if callback is None:
            traits, source, cycle = self._traits, self._source, self._traits.cycle
            if traits.shards:
                # Whether all of them start over is decided where all of them are known.
                source, cycle = _Shard(source, shard), "raise"
            callback = Callback(source, cycle, batch=traits.batch, batch_info=traits.batch_info)
            self._callbacks[shard] = callback
        return callback

    def run(self, task: Task, progress: Callable[[], None] = lambda: None) -> list[OutputSamples]:
        """The samples that `task` asks for, for each output."""
        self.at = None
        traits = self._traits
        if isinstance(task, RewindTask):
            if task.shard in self._callbacks:
                self._callback(task.shard).new_epoch()
            return []
        if isinstance(task, ResumeTask):
            self._callback(task.shard).resume(task.passes, task.passes, task.taken)
            return []
        if isinstance(task, BatchTask) and traits.plans:
            data = self._source.load_batch(task.plan)
        elif traits.batch:
            callback = self._callback(task.shard if isinstance(task, NextTask) else 0)
            data = callback(BatchInfo(task.iteration, task.epoch))
        else:
            return self._samples(task, progress)  # type: ignore[arg-type]
        return list(map(unpack, per_output(data, traits.num_outputs), traits.dtypes))

    def _samples(
        self, task: SamplesTask | NextTask, progress: Callable[[], None]
    ) -> list[OutputSamples]:
        first, stop = (0, task.size) if isinstance(task, NextTask) else (task.first, task.stop)
        columns: list[list[Any]] = [[] for _ in range(self._traits.num_outputs or 1)]
        callback = self._callback()
        for k in range(first, stop):
            self.at = k
            info = SampleInfo(task.iteration * task.size + k, k, task.iteration, task.epoch)
            values = per_output(callback(info), self._traits.num_outputs)
            for column, value in zip(columns, values, strict=True):
                column.append(value)
            progress()
        self.at = None
        return list(map(unpack, columns, self._traits.dtypes))
