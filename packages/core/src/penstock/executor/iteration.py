"""One batch on its way through the stages: what is done, what is being worked on, what failed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from penstock.executor.cpu.batch import BatchBuffer
    from penstock.executor.cpu.program import Program
    from penstock.executor.gpu.batch import GpuBatch
    from penstock.executor.sources.reading import Reading
    from penstock.executor.step import Step


class Iteration:
    """State of one iteration; all fields are guarded by the scheduler's lock unless said."""

    __slots__ = (
        "begun",
        "buffers",
        "done",
        "draw_numbers",
        "entering",
        "entries",
        "error",
        "failures",
        "fed",
        "first_program",
        "held",
        "in_flight",
        "next",
        "number",
        "passed",
        "program",
        "queue",
        "reading",
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
        "states",
        "waiting",
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
        self.begun = False
        self.stage = -1
        self.passed = -1
        """The last stage that is complete; kept where stages come in the order of iterations."""
        self.held = False
        """Whether it waits for earlier ones to complete the stage."""
        self.program: Program | None = None
        self.first_program: Program | None = None
        """The program of the first stage, to which it returns where bad samples are made up for."""
        self.waiting = ""
        """The lane of the GPU that is to take it on; empty if none is."""
        self.entering = False
        """Whether a worker is to wait for copies from the GPU and begin the next stage."""
        self.buffers: list[Any] = []
        """Batch of each register, a `BatchBuffer` or a `GpuBatch`; written by whoever runs the
        stage, without the lock.
        """
        self.entries: dict[int, list[Any]] = {}
        """What each reader drew: one entry a sample."""
        self.states: dict[int, Any] = {}
        """State of each reader before it drew for this iteration."""
        self.next = 0
        self.queue: list[int] = []
        """Samples to run again, after those up to `size` have been handed out."""
        self.in_flight = 0
        self.reading: Reading | None = None
        """What reads all of its samples at once, until somebody has waited for that."""
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
        self.error: BaseException | None = None
        self.done = False
        self.seeds: dict[int, Any] | None = None
        """Seeds for this iteration alone, by the serial number of the operator's node."""
        self.started = 0.0
        self.seconds = 0.0

    def seed_of(self, step: Step) -> Any:
        """What random numbers of a step depend on."""
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
        have failed since. Nobody else may be at work on the iteration.
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
