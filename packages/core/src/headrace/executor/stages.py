"""Transitions between stages: inputs of an iteration in each, and its next stage."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from headrace.executor.cpu.batch import BatchBuffer
from headrace.executor.cpu.batch_step import planned_program, run_batch_step
from headrace.executor.cpu.profile_labels import batch_labels, whole_labels
from headrace.executor.cpu.shape_statistics import ShapeStatistics
from headrace.executor.guards import members
from headrace.executor.output_memory import in_pool
from headrace.executor.plan import fed_registers
from headrace.executor.recovery import RESTART
from headrace.executor.step import reads
from headrace.operators.support.schema import Spec
from headrace.profiling.recorder import NO_RECORD, SpanRecorder
from headrace.tensors.gpu.device import GpuDevice
from headrace.tensors.pool import HOST_POOL, HostPool
from headrace.types import DALIDataType

if TYPE_CHECKING:
    from headrace.executor.cpu.program import Program
    from headrace.executor.guards import Guard
    from headrace.executor.iteration import Iteration
    from headrace.executor.plan import Plan
    from headrace.executor.processes.functions import RemoteFunctions
    from headrace.executor.programs import Programs
    from headrace.executor.recovery import Recovery
    from headrace.executor.step import Step

ENTER = "enter"
"""A stage on the CPU that is to be entered when copies from the GPU have been waited for."""


class Stages:
    """The stages of a plan, in order."""

    def __init__(
        self,
        plan: Plan,
        programs: Programs,
        recovery: Recovery,
        device: GpuDevice | None,
        pool: HostPool = HOST_POOL,
        pinned: HostPool | None = None,
        *,
        packs: bool = True,
        functions: RemoteFunctions | None = None,
        batch_pool: HostPool = HOST_POOL,
        nothing_on_gpu: Callable[[Spec], Any] | None = None,
        recorder: SpanRecorder = NO_RECORD,
        output_pool: HostPool | None = None,
        writes_outputs: bool = True,
        threads: int = 1,
    ) -> None:
        self._output_pool = output_pool
        """Pool that outputs on the host are handed over in, if it is another one."""
        self._writes_outputs = output_pool is not None and writes_outputs
        """True if samples are written to that pool, and not copied to it when all are there."""
        self._threads = threads
        self._recorder = recorder
        self._packed: dict[int, Guard] = {}
        """Outputs that are handed over packed, with the samples they have."""
        if packs:
            self._packed = {r: plan.guards[r] for r in plan.outputs if r in plan.guards}
        self._nothing_on_gpu = nothing_on_gpu
        self._functions = functions
        self._batch_pool = batch_pool
        self._plan = plan
        self._programs = programs
        self._recovery = recovery
        self._pinned = device.pinned if pinned is None and device is not None else pinned
        self._pool = pool
        self._only_feeds = [fed_registers(plan, stage) for stage in plan.stages]

    def enter(self, iteration: Iteration, number: int, part: tuple[int, ...] = ()) -> Program:
        """Prepare a stage on the CPU: memory, constants, draws for the whole batch; or the rest of
        it, see `Program.late`.
        """
        size = iteration.size
        with self._recorder.span(-1, iteration.number, size) as span:
            program = planned_program(
                partial(self._programs.on_cpu, iteration, number, part),
                iteration,
                self._plan.history,
            )
            for r, _ in program.written:
                pool = self._pool
                if (
                    self._pinned is not None
                    and self._plan.uploaded[r]
                    and r not in self._plan.outputs
                ):
                    pool = self._pinned
                elif self._writes_outputs and r in self._plan.outputs:
                    assert self._output_pool is not None
                    pool = self._output_pool
                iteration.buffers[r] = program.buffer(r, size, pool)
            if program.whole_steps:  # worked out together, and noted as one
                key = "whole", id(program)
                span.code = self._recorder.code(key, partial(whole_labels, program))
        iteration.stage = number
        if number == 0 and not part:
            iteration.first_program = program
        if program.steps:
            iteration.run_all()
        else:
            iteration.next, iteration.queue = size, []
        return program

    def complete(self, iteration: Iteration, program: Program) -> Program | str | None:
        """Handle failures, run batch operators; return the next step."""
        if iteration.failures:
            again = self._recovery.resolve(iteration)
            if again:
                return self._again(iteration, again, program)
        for step in program.batch_steps:
            iteration.replace(reads(step))
            self._run_batch_step(step, program, iteration)
            if iteration.failures:
                again = self._recovery.resolve(iteration)
                if again:
                    return self._again(iteration, again, program)
        if program.late:
            return self.enter(iteration, iteration.stage, program.late)
        iteration.completed = iteration.stage
        return self.following(iteration)

    def _run_batch_step(self, step: Step, program: Program, iteration: Iteration) -> None:
        recorder = self._recorder
        code = recorder.code(
            ("step", step.node.serial), partial(batch_labels, step, self._plan.nodes)
        )
        with recorder.span(code, iteration.number, iteration.size):
            run_batch_step(
                step,
                program,
                iteration,
                self._plan.history,
                tolerant=self._recovery.tolerates,
                functions=self._functions,
                pool=self._batch_pool,
            )

    def mend(self, iteration: Iteration, error: BaseException) -> Program | str | None:
        """Handle failed samples of a stage on the GPU; return the next step."""
        again = self._recovery.mend(iteration, error)
        if again:
            assert iteration.first_program is not None
            return self._again(iteration, again, iteration.first_program)
        return self.following(iteration)

    def _again(self, iteration: Iteration, again: str, program: Program) -> Program:
        if again == RESTART:
            iteration.completed = -1
            return self.enter(iteration, 0)
        return program

    def following(self, iteration: Iteration) -> Program | str | None:
        """Return the next step of an iteration after a completed stage.

        The program of a stage on the CPU, the name of a stream, or `ENTER` where copies from the
        GPU must be waited for first; `None` at the end.
        """
        number = iteration.stage + 1
        stages = self._plan.stages
        while number < len(stages) and self._pass_fed(iteration, number):
            iteration.stage = number
            number += 1
        if number >= len(stages):
            iteration.replace(self._plan.outputs)
            if self._packed:
                self._pack(iteration)
            if self._output_pool is not None:
                buffers = iteration.buffers
                for r in self._plan.outputs:
                    if isinstance(buffers[r], BatchBuffer):
                        buffers[r] = in_pool(buffers[r], self._output_pool, self._threads)
            return None
        stage = stages[number]
        if stage.device != "cpu":
            iteration.replace(stage.reads)  # operators on the GPU take whole batches
            return stage.device
        if self._plan.stages[iteration.stage].device != "cpu":
            return ENTER
        return self.enter(iteration, number)

    def _pack(self, iteration: Iteration) -> None:
        """Hand over only the samples that outputs have which are made in a branch."""
        iteration.replace([r for guard in self._packed.values() for r, _ in guard])
        buffers = iteration.buffers
        packed = {
            r: self._nothing(r)
            if buffers[r] is None  # no sample took the branch, so its type is unknown
            else buffers[r].taken(members(guard, buffers, iteration.size))
            for r, guard in self._packed.items()
        }
        for r, batch in packed.items():
            buffers[r] = batch

    def _nothing(self, register: int) -> Any:
        """A batch of no samples."""
        spec = Spec(DALIDataType.UINT8, 1)
        if not self._plan.on_gpu[register]:
            return BatchBuffer(0, spec, ShapeStatistics())
        assert self._nothing_on_gpu is not None
        return self._nothing_on_gpu(spec)

    def _pass_fed(self, iteration: Iteration, number: int) -> bool:
        """Pass fed batches on, if a stage does nothing else and they are on the GPU already."""
        registers, fed = self._only_feeds[number], iteration.fed
        for r in registers:
            if isinstance(fed[r], BatchBuffer):
                return False
        for r in registers:
            iteration.buffers[r] = fed[r]
        return bool(registers)
