"""Counters, memory and bad samples of a pipeline's run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.pipeline.memory_report import MemoryReport, memory_report
from headrace.pipeline.workers import what_carries
from headrace.tracebacks import public_methods

if TYPE_CHECKING:
    from headrace.executor.bad_samples import BadSample
    from headrace.pipeline.engine import Engine
    from headrace.pipeline.settings import Settings
    from headrace.pipeline.source_workers import SourceWorkers


@public_methods
class Inspection:
    """The methods of a pipeline that tell what it did, and what it has."""

    if TYPE_CHECKING:
        _settings: Settings
        _engine: Engine | None
        _source_workers: SourceWorkers

        def _built(self) -> Engine: ...

    @property
    def bad_samples(self) -> list[BadSample]:
        """Samples that were skipped or replaced so far: source, operator, reason.

        Those of iterations that are worked on ahead are among them; see `BadSample.iteration`.
        """
        return [] if self._engine is None else list(self._engine.executor.bad_samples)

    def executor_statistics(self) -> dict[str, Any]:
        """Memory of each operator's outputs, with ``enable_memory_stats``; else `counters`.

        Memory is that of the largest batch that was taken, in bytes, by ``CPU_``, ``MIXED_`` or
        ``GPU_`` and the name of the operator: lists with a number for each output.
        ``real_memory_size`` is that of the elements, ``reserved_memory_size`` that of the memory in
        which they lie; ``max_real_memory_size`` and ``max_reserved_memory_size`` are these for one
        sample, and what `bytes_per_sample_hint` takes. They are 0 for what never becomes a batch,
        because the next operator took it sample by sample. Empty before the first batch.
        """
        if self._engine is None:
            return {}
        if self._engine.memory_statistics is not None:
            return {**self._engine.memory_statistics.as_dict()}
        return self.counters()

    def memory_report(self) -> MemoryReport:
        """Return the present holders of the pipeline's memory: operators, batches, the user, pools.

        It prints as a table.
        """
        sizes = self._source_workers.shared_memory()["capacities"]
        return memory_report(self._built(), sum(sizes))

    def counters(self) -> dict[str, Any]:
        """Counters since the build, times in seconds; and why ``workers`` are threads, if they are.

        ``functions_not_in_workers`` has the functions of users that worker processes should call
        and do not: why, by the name of the operator.
        ``consumer_wait_seconds`` near zero says that the pipeline keeps up with its consumer.
        """
        if self._engine is None:
            return {}
        found: dict[str, Any] = {**self._engine.executor.statistics.as_dict()}
        found |= what_carries(self._engine.executor, self._settings)
        return found

    def external_source_shm_statistics(self) -> dict[str, list[int]]:
        """Bytes of shared memory that parallel external sources have, piece by piece."""
        return self._source_workers.shared_memory()
