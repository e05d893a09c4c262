"""The programs of all stages: made when data of new types comes up, and kept."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from headrace._forking import no_fork
from headrace.executor.cpu.program import Program
from headrace.executor.guards import chosen_branches
from headrace.operators.support.schema import Spec
from headrace.profiling.recorder import NO_RECORD, SpanRecorder

if TYPE_CHECKING:
    from headrace.executor.gpu.program import GpuProgram
    from headrace.executor.guards import Choices
    from headrace.executor.iteration import Iteration
    from headrace.executor.plan import Plan, Stage


class Programs:
    """Programs of stages, by the types of their data."""

    def __init__(
        self,
        plan: Plan,
        readers: dict[int, Any],
        *,
        fuse: bool,
        threads: int,
        recorder: SpanRecorder = NO_RECORD,
    ) -> None:
        self._recorder = recorder
        self._plan = plan
        self._readers = readers
        self._fuse = fuse
        self._threads = threads
        self._programs: dict[tuple[Any, ...], Any] = {}
        """By number of a stage, its maker, and types of registers."""
        self._making = threading.Lock()
        """Held while a program is made; existing ones are found without it."""
        self._last: dict[tuple[int, Any, Any], tuple[list[Spec | None], Choices, Any]] = {}

    def on_cpu(
        self, iteration: Iteration, number: int, part: tuple[int, ...] = (), *, whole: bool = True
    ) -> Program:
        """Return the program of stage `number`, for the types of all data of `iteration`; or of the
        rest of the stage, see `Program.late`.

        Without `whole`, all that may fail for a sample is done sample by sample.
        """
        make = self._cpu_program if whole else self._program_by_sample
        choices = self._choices(iteration, self._plan.part(number, part)) if part else ()
        program: Program = self._found(iteration, number, make, part, choices)
        return program

    def on_gpu(self, iteration: Iteration, number: int) -> GpuProgram:
        """The same for a stage on the GPU."""
        program: GpuProgram | None = self._found(iteration, number, self._gpu_program)
        if program is None:
            choices = self._choices(iteration, self._plan.stages[number])
            program = self._found(iteration, number, self._gpu_program, (), choices)
            assert program is not None, "no choice is open on the GPU"
        return program

    def _choices(self, iteration: Iteration, stage: Stage) -> Choices:
        """Return the branches that samples take, of those that decide types in a stage."""
        nodes = (*stage.sample_nodes, *stage.batch_nodes)
        guards = [guard for node in nodes for guard in self._plan.guards_of(node)]
        read = [r for guard in guards for r, _ in guard]
        made = {self._plan.register(e) for n in nodes for e in n.outputs}
        there = [r for r in read if r not in made]
        iteration.replace(there)
        return chosen_branches(guards, there, iteration.buffers, iteration.size)

    def last_on_cpu(self) -> list[Program]:
        """The programs on the CPU that ran last."""
        return [found for *_, found in list(self._last.values()) if isinstance(found, Program)]

    def known_specs(self) -> dict[int, Spec]:
        """Types of the registers in the programs that ran last."""
        found: dict[int, Spec] = {}
        for *_, program in list(self._last.values()):
            found |= program.specs if program is not None else {}
        return found

    def _found(
        self,
        iteration: Iteration,
        number: int,
        make: Any,
        part: tuple[int, ...] = (),
        choices: Choices = (),
    ) -> Any:
        specs = [None if b is None else b.spec for b in iteration.buffers]
        for r, b in iteration.fed.items():
            specs[r] = b.spec
        last = self._last.get((number, make, part))
        # The very same objects, but for types that came up in this iteration.
        if last is not None and last[0] == specs and last[1] == choices:
            return last[2]
        key = number, make, part, choices, tuple(specs)
        if key in self._programs:
            program = self._programs[key]
        else:
            with no_fork, self._making:  # two threads may come to it at once
                if key not in self._programs:
                    known = {r: spec for r, spec in enumerate(specs) if spec is not None}
                    stage = self._plan.part(number, part)
                    self._programs[key] = make(stage, known, choices)
                program = self._programs[key]
        self._last[number, make, part] = specs, choices, program
        return program

    def _cpu_program(
        self, stage: Stage, specs: dict[int, Spec], choices: Choices, *, whole: bool = True
    ) -> Program:
        return Program(
            *(self._plan, stage, specs, self._readers, self._fuse),
            threads=self._threads,
            whole=whole,
            choices=choices,
        )

    def _program_by_sample(self, stage: Stage, specs: dict[int, Spec], choices: Choices) -> Program:
        return self._cpu_program(stage, specs, choices, whole=False)

    def _gpu_program(
        self, stage: Stage, specs: dict[int, Spec], choices: Choices
    ) -> GpuProgram | None:
        from headrace.executor.gpu.program import GpuProgram, OpenBranchError

        try:
            return GpuProgram(
                *(self._plan, stage, specs),
                fuse=self._fuse,
                threads=self._threads,
                choices=choices,
                recorder=self._recorder,
            )
        except OpenBranchError:
            return None
