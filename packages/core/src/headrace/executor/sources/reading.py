"""Reading a whole batch at once, where that is all a stage has to do before a stage on the GPU.

Nothing in it is done sample by sample in Python, and threads that read need no interpreter: see
`headrace.kernels.cpu.reading_loop`. What cannot be read so is left to workers, one by one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.executor.cpu.batch import BatchBuffer
from headrace.executor.plan import shares_streams
from headrace.executor.source_names import SourceNames
from headrace.executor.sources.files_batch import FilesBatch

if TYPE_CHECKING:
    from headrace.executor.affinity import Affinity
    from headrace.executor.cpu.program import Program
    from headrace.executor.iteration import Iteration
    from headrace.executor.loader import Loader
    from headrace.executor.plan import Plan
    from headrace.kernels.cpu.reading_threads import BeingRead, ReadingThreads


_SMALL_BYTES = 32768
"""So little is copied to a GPU from any memory without a wait: the driver puts it among its
commands.
"""


def reads_for_gpu(plan: Plan) -> bool:
    """Return True if the first stage only reads samples, for a stage on the GPU."""
    stages = plan.stages
    nodes = stages[0].sample_nodes
    return (
        len(stages) > 1
        and stages[1].device != "cpu"
        and not stages[0].batch_nodes
        and len(plan.readers) == 1
        and not any(node.sources for node in nodes)
    )


def decodes_next(plan: Plan) -> bool:
    """Return True if the read files go to a decoder."""
    return any(plan.uploaded[r] for r in plan.stages[1].reads) and not shares_streams(plan)


class BatchReading:
    """The files of one iteration, on their way."""

    __slots__ = ("_files", "_iteration", "_sources", "program")

    def __init__(
        self, iteration: Iteration, program: Program, files: BeingRead, sources: SourceNames
    ) -> None:
        self._iteration = iteration
        self.program = program
        """That of the stage."""
        self._files = files
        self._sources = sources

    def stop(self) -> None:
        """Leave out files that were not read yet: they are not wanted any more."""
        self._files.stop()

    def wait(self) -> list[int]:
        """Wait for the files; return the samples that are left to workers."""
        found = self._files.wait()
        step, iteration = self.program.steps[0], self._iteration
        step.op.note_size(found)
        r = step.outputs[0]
        made = iteration.buffers[r]
        if made is not None:
            batch = FilesBatch(found, made.spec, self.program.plan.history[r], made.pool)
            batch.sources = self._sources
            iteration.buffers[r] = batch
        refused = 0 if step.op.index.allows_empty else found.empty
        if not found.unread + refused:
            return []
        bad = found.addresses < 0
        if refused:
            bad |= found.sizes == 0
        return np.flatnonzero(bad).tolist()


class BatchReader:
    """Begins to read batches of one executor."""

    def __init__(self, threads: int, *, affinity: Affinity | None, scans: bool) -> None:
        self._scans = scans
        self._count = threads
        self._affinity = affinity
        self._threads: ReadingThreads | None = None
        self._has_none = False
        self._closed = False

    def begin(self, iteration: Iteration, program: Program) -> BatchReading | None:
        """Begin to read the samples of a stage; `None` if workers have to.

        Labels and the like are there when it returns.
        """
        step = program.steps[0]
        loader: Loader = step.op
        if loader.index.local is None or loader.pieces != 1:
            return None
        threads = self._found_threads()
        if threads is None:
            return None
        entries = iteration.entries[id(step.node)].copy()  # bad samples are drawn anew in there
        try:
            sources = loader.sources(entries)
            known = [
                (r, _whole(values, buffer, program, r, sources))
                for r, values in zip(step.outputs[1:], loader.columns(entries), strict=True)
                if (buffer := iteration.buffers[r]) is not None
            ]
            first = iteration.buffers[step.outputs[0]]
            files = loader.begin(threads, entries, first.empty, self._scans)
        except Exception:  # whatever it is, workers meet it again and know the sample
            return None
        for r, batch in known:  # not before: where that fails, workers need theirs
            iteration.buffers[r] = batch
        return BatchReading(iteration, program, files, sources)

    def _found_threads(self) -> ReadingThreads | None:
        if self._threads is None and not (self._has_none or self._closed):
            from headrace.kernels.cpu.reading_threads import ReadingThreads

            affinity, count = self._affinity, self._count
            bound = None if affinity is None else [affinity.of(k) for k in range(count)]
            try:
                self._threads = ReadingThreads(count, bound)
            except RuntimeError:
                self._has_none = True  # workers do their work
        return self._threads

    def close(self) -> list[Any]:
        """Let the threads go; those that are to be waited for."""
        self._closed = True
        threads = self._threads
        if threads is None:
            return []
        threads.close()
        return threads.threads


def _whole(
    values: Any, buffer: BatchBuffer, program: Program, r: int, sources: SourceNames
) -> BatchBuffer:
    """The batch of an output of which all samples are known."""
    if isinstance(values, list):
        buffer.put_rows(range(len(values)), values)
        buffer.sources = sources
        return buffer
    if (
        buffer.pool.is_page_locked
        and values.nbytes <= _SMALL_BYTES
        and values.dtype == buffer.dtype
    ):
        dense = values
    else:
        dense = buffer.empty(values.shape, buffer.dtype)
        np.copyto(dense, values, casting="unsafe")
    made = BatchBuffer.of_values(dense, buffer.spec, program.plan.history[r], buffer.pool)
    made.sources = sources
    return made
