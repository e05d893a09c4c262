"""The programs of all stages: made when data of new types comes up, and kept."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from headrace._forking import no_fork
from headrace.executor.cpu.program import Program
from headrace.operators.support.schema import Spec

if TYPE_CHECKING:
    from headrace.executor.gpu.program import GpuProgram
    from headrace.executor.iteration import Iteration
    from headrace.executor.plan import Plan, Stage


class Programs:
    """What stages are made into, by the types of the data that they find.

    Parameters
    ----------
    plan
        The graph, cut into stages.
    readers
        The opened reader of each reader node, by ``id(node)``.
    fuse
        Whether neighbouring operators may be merged.
    threads
        How many threads there are on the CPU; as many may an operator of a GPU use.
    """

    def __init__(self, plan: Plan, readers: dict[int, Any], *, fuse: bool, threads: int) -> None:
        self._plan = plan
        self._readers = readers
        self._fuse = fuse
        self._threads = threads
        self._programs: dict[tuple[Any, ...], Any] = {}
        """By number of a stage, what makes it, and types of registers."""
        self._making = threading.Lock()
        """Held while a program is made; what is there already is found without it."""
        self._last: dict[tuple[int, Any], tuple[list[Spec | None], Any]] = {}

    def on_cpu(self, iteration: Iteration, number: int, *, whole: bool = True) -> Program:
        """The program of stage `number`, for the types of all data that `iteration` has.

        Without `whole`, all that may fail for a sample is done sample by sample.
        """
        make = self._cpu_program if whole else self._program_by_sample
        program: Program = self._found(iteration, number, make)
        return program

    def on_gpu(self, iteration: Iteration, number: int) -> GpuProgram:
        """The same for a stage on the GPU."""
        program: GpuProgram = self._found(iteration, number, self._gpu_program)
        return program

    def known_specs(self) -> dict[int, Spec]:
        """Types of the registers in the programs that ran last."""
        found: dict[int, Spec] = {}
        for _, program in list(self._last.values()):
            found |= program.specs
        return found

    def _found(self, iteration: Iteration, number: int, make: Any) -> Any:
        specs = [None if b is None else b.spec for b in iteration.buffers]
        for r, b in iteration.fed.items():
            specs[r] = b.spec
        last = self._last.get((number, make))
        # The very same objects, but for types that came up in this iteration.
        if last is not None and last[0] == specs:
            return last[1]
        key = number, make, tuple(specs)
        program = self._programs.get(key)
        if program is None:
            with no_fork, self._making:  # two threads may come to it at once
                program = self._programs.get(key)
                if program is None:
                    known = {r: spec for r, spec in enumerate(specs) if spec is not None}
                    program = self._programs[key] = make(self._plan.stages[number], known)
        self._last[number, make] = specs, program
        return program

    def _cpu_program(self, stage: Stage, specs: dict[int, Spec]) -> Program:
        return Program(self._plan, stage, specs, self._readers, self._fuse, threads=self._threads)

    def _program_by_sample(self, stage: Stage, specs: dict[int, Spec]) -> Program:
        return Program(
            self._plan, stage, specs, self._readers, self._fuse, threads=self._threads, whole=False
        )

    def _gpu_program(self, stage: Stage, specs: dict[int, Spec]) -> GpuProgram:
        from headrace.executor.gpu.program import GpuProgram

        return GpuProgram(self._plan, stage, specs, fuse=self._fuse, threads=self._threads)
