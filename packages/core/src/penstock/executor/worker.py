"""A thread of the pool."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

from penstock.executor.arena import Arena
from penstock.executor.program import Program, SampleRunner

if TYPE_CHECKING:
    from penstock.executor.executor import Executor
    from penstock.executor.iteration import Iteration


class Worker(threading.Thread):
    """Takes samples from the executor and carries them through their stage."""

    def __init__(self, executor: Executor, number: int, *, bind: bool) -> None:
        super().__init__(name=f"penstock-worker-{number}", daemon=True)
        self._executor = executor
        self._processor = number if bind else None
        self._arena = Arena()
        self._runners: dict[Program, SampleRunner] = {}

    def run(self) -> None:
        """Work until the executor shuts down."""
        executor = self._executor
        self._bind()
        while (task := executor.next_task()) is not None:
            iteration, samples = task
            if samples is None:
                executor.begin(iteration)
            else:
                failures = self._run_samples(iteration, samples)
                executor.finish_samples(iteration, failures)
            # Nothing of a finished iteration may stay alive in a waiting thread: its memory
            # belongs to the user, and returns to the pool when the user lets go.
            del task, iteration, samples

    def _bind(self) -> None:
        """Bind the thread to one of the processors that the process may use."""
        if self._processor is not None and hasattr(os, "sched_setaffinity"):
            allowed = sorted(os.sched_getaffinity(0))
            os.sched_setaffinity(0, {allowed[self._processor % len(allowed)]})

    def _run_samples(
        self, iteration: Iteration, samples: list[int]
    ) -> list[tuple[int, BaseException]]:
        program = iteration.program
        assert program is not None
        runner = self._runners.get(program)
        if runner is None:
            runner = SampleRunner(program, self._arena, materialise_views=not self._executor.fuse)
            self._runners[program] = runner
        runner.bind(iteration)
        failures: list[tuple[int, BaseException]] = []
        for index in samples:
            try:
                runner.run(index)
            except Exception as error:
                failures.append((index, error))
        runner.release()
        return failures
