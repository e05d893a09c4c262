"""One batch on its way through the stages: where it is, what failed, and its data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import IntEnum, auto
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import numpy as np

    from headrace.executor.bad_samples import BadSample
    from headrace.executor.cpu.batch import BatchBuffer
    from headrace.executor.cpu.program import Program
    from headrace.executor.gpu.batch import GpuBatch
    from headrace.executor.step import Step


class IterationState(IntEnum):
    """State of an iteration. One thread owns it in the states that `OWNED` lists."""

    SCHEDULED = auto()
    """It is in the queue, and its readers have not drawn for it."""
    BEGINNING = auto()
    """A thread draws from the readers and makes the first stage ready; one iteration at a time."""
    READING = auto()
    """Threads without the interpreter read its files; see `Iteration.files`."""
    AWAITING_FILES = auto()
    """The thread of a stream waits for these files."""
    RUNNING = auto()
    """Workers take its samples; `Iteration.in_flight` chunks are being worked on."""
    HELD = auto()
    """All samples are done; earlier iterations have to complete the stage before it does."""
    COMPLETING = auto()
    """A thread runs the batch operators of the stage and makes the next one ready."""
    COPYING = auto()
    """A stage on the CPU follows one on the GPU; a worker has to wait for copies."""
    ENTERING = auto()
    """A worker waits for these copies and makes the stage ready."""
    QUEUED = auto()
    """Its next stage is on the GPU; a thread has to launch it on `Iteration.stream`."""
    LAUNCHING = auto()
    """A thread launches the stage."""
    DONE = auto()
    """It is complete or has failed; no thread owns it."""


(
    SCHEDULED,
    BEGINNING,
    READING,
    AWAITING_FILES,
    RUNNING,
    HELD,
    COMPLETING,
    COPYING,
    ENTERING,
    QUEUED,
    LAUNCHING,
    DONE,
) = IterationState  # names of the module are found in a fifth of the time

OWNED = frozenset({BEGINNING, READING, AWAITING_FILES, COMPLETING, ENTERING, LAUNCHING})
"""States that end by themselves and must be waited for: by a thread, or by the readers of files."""

# Every change is made under the executor's monitor; so it is said here only who makes it.
TRANSITIONS: dict[IterationState, frozenset[IterationState]] = {
    # The thread that is going to begin it.
    SCHEDULED: frozenset({BEGINNING}),
    # The same thread, which may have failed; or has done all of it: `headrace.executor.cpu.inline`.
    BEGINNING: frozenset({READING, RUNNING, DONE}),
    # The thread of the stream that follows.
    READING: frozenset({AWAITING_FILES}),
    AWAITING_FILES: frozenset({RUNNING, DONE}),
    # The worker with the last chunk; or the thread that began a stage without samples.
    RUNNING: frozenset({COMPLETING, HELD, DONE}),
    # The thread that completes the stage of the iteration before.
    HELD: frozenset({RUNNING}),
    # The thread that completes the stage. RUNNING: the next stage, or failed samples once more.
    COMPLETING: frozenset({RUNNING, COPYING, QUEUED, DONE}),
    # A worker.
    COPYING: frozenset({ENTERING}),
    ENTERING: frozenset({RUNNING, DONE}),
    # The thread of the stream, or one that does its work.
    QUEUED: frozenset({LAUNCHING}),
    LAUNCHING: frozenset({RUNNING, COPYING, QUEUED, DONE}),
    DONE: frozenset(),
}
"""To which states each may change."""

UNDONE = frozenset({BEGINNING, RUNNING, COMPLETING, LAUNCHING, DONE})
"""States of an iteration that a Ctrl-C may interrupt in the consumer's thread. It goes back to
`SCHEDULED` or `QUEUED` then: see `headrace.executor.gpu.inline`, and that for the CPU."""


class FilesInFlight(Protocol):
    """Reader of all samples of an iteration at once; see `headrace.executor.sources.reading`."""

    program: Program
    """That of the stage."""

    def wait(self) -> list[int]:
        """Wait for the files; return the samples that are left to workers."""

    def stop(self) -> None:
        """Leave out files that were not read yet."""


class Iteration:
    """One iteration; all fields are guarded by the executor's monitor unless said."""

    __slots__ = (
        "bad_samples",
        "buffers",
        "completed",
        "draw_numbers",
        "elements",
        "entries",
        "error",
        "failures",
        "fed",
        "files",
        "first_program",
        "in_flight",
        "next",
        "number",
        "packed",
        "padded_elements",
        "program",
        "python_function_seconds",
        "queue",
        "redrawn",
        "redraws",
        "replacements",
        "seconds",
        "seeds",
        "size",
        "skipped",
        "sources",
        "stage",
        "started",
        "state",
        "states",
        "stream",
        "worker_inputs",
    )

    def __init__(
        self,
        number: int,
        size: int,
        fed: Mapping[int, BatchBuffer | GpuBatch],
        sources: Mapping[str, Any] | None = None,
    ) -> None:
        self.number = number
        self.size = size
        self.fed = fed
        """Batches of the external sources, by register."""
        self.sources = sources
        """State of the external sources before they were asked, where checkpoints can be made."""
        self.state = SCHEDULED
        self.stage = -1
        self.completed = -1
        """The last stage that is complete; kept where stages come in the order of iterations."""
        self.program: Program | None = None
        self.first_program: Program | None = None
        """The program of the first stage, to which it returns where bad samples are made up for."""
        self.stream = ""
        """On which stream of the GPU its next stage is to be launched, where it is `QUEUED`."""
        self.buffers: list[Any] = []
        """Batch of each register, a `BatchBuffer` or a `GpuBatch`; written by the thread that owns
        the iteration, without the lock. It owns their memory until the consumer takes the outputs.
        """
        self.worker_inputs: dict[int, Any] = {}
        """Inputs of worker processes, by register."""
        self.packed: dict[Program, Any] = {}
        """Common part of the tasks of worker processes, by program."""
        self.entries: dict[int, np.ndarray] = {}
        """Indices of the entries that each reader drew for the samples, int64."""
        self.states: dict[int, Any] = {}
        """State of each reader before it drew for this iteration."""
        self.next = 0
        self.queue: list[int] = []
        """Samples to run again, after those up to `size` have been handed out."""
        self.in_flight = 0
        """Chunks of samples that workers have in hand, where it is `RUNNING`."""
        self.files: FilesInFlight | None = None
        """Reader of all its samples at once, until a thread has waited for it."""
        self.failures: dict[int, BaseException] = {}
        self.replacements: dict[int, int] = {}
        """For each failed sample the good one whose row of every output takes its place."""
        self.redraws = 0
        """Samples that were drawn anew and turned out to be bad, since the last good one."""
        self.redrawn = size
        """Samples that were drawn last, at once."""
        self.skipped = 0
        """Samples that were dropped and replaced by later ones of the reader."""
        self.draw_numbers: list[int] | None = None
        """For each sample, which of the entries drawn for the iteration it is, if any was
        redrawn.
        """
        self.bad_samples: tuple[BadSample, ...] = ()
        """Those found in it, in the order in which they were."""
        self.error: BaseException | None = None
        """Error it fails with, once its owner has noticed."""
        self.seeds: dict[int, Any] | None = None
        """Seeds for this iteration alone, by the serial number of the operator's node."""
        self.started = 0.0
        self.seconds = 0.0
        self.python_function_seconds = 0.0
        self.elements = self.padded_elements = 0
        """Of samples that were padded to the largest of the batch, before and after."""

    @property
    def done(self) -> bool:
        """True if it is complete or has failed."""
        return self.state is DONE

    @property
    def is_busy(self) -> bool:
        """True if a thread owns it."""
        return self.in_flight > 0 or self.state in OWNED

    def check(self, state: IterationState) -> None:
        """Check that the iteration may change to `state`."""
        if state not in TRANSITIONS[self.state]:
            raise RuntimeError(
                f"Iteration {self.number} cannot change from {self.state.name} to {state.name}; "
                "this is an error of Headrace, please report it."
            )

    def change(self, state: IterationState) -> None:
        """Change to `state`, if the table allows it. The caller holds the executor's monitor."""
        if state not in TRANSITIONS[self.state]:
            self.check(state)
        self.state = state

    def seed_of(self, step: Step) -> Any:
        """Return the seed of a step's random numbers."""
        return step.seed if self.seeds is None else self.seeds.get(step.node.serial, step.seed)

    def run_all(self) -> None:
        """Have all samples run that have not failed yet."""
        self.next, self.queue = 0, []
        if self.replacements:
            self.next = self.size
            self.queue = [k for k in reversed(range(self.size)) if k not in self.replacements]

    def replace(self, registers: Iterable[int]) -> None:
        """Put replacements in the place of failed samples, in these batches.

        Good samples stay what they are, so it does no harm to do it again, or when other samples
        have failed since. No other thread may own the iteration.
        """
        if not self.replacements:
            return
        for r in set(registers):
            if self.buffers[r] is not None:
                self.buffers[r] = self.buffers[r].replaced(self.replacements)

    def take(self, most: int) -> list[int]:
        """Numbers of samples to work on now; empty when none is left in this stage."""
        if self.next < self.size:
            first = self.next
            self.next = min(self.size, first + most)
            return list(range(first, self.next))
        if self.queue:
            return [self.queue.pop()]
        return []
