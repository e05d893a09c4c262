"""Stages on a GPU that note how long their launches take, and name them for Nsight."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from time import perf_counter_ns, thread_time_ns
from typing import TYPE_CHECKING, Any

from headrace.executor.cpu.profile_labels import label_of
from headrace.executor.gpu.program import GpuProgram
from headrace.profiling.recorder import Label

if TYPE_CHECKING:
    from headrace.executor.gpu.program import _Prepared, _Run
    from headrace.executor.iteration import Iteration
    from headrace.profiling.recorder import ProfileRecorder
    from headrace.tensors.gpu.queue import Queue


class ProfiledGpuProgram(GpuProgram):
    """A `GpuProgram` that notes each operator's launch; its ranges are seen by NVTX tools."""

    def record(self, recorder: ProfileRecorder) -> None:
        """Have rows go to a recorder; called before the first run."""
        numbers = {id(node): k for k, node in enumerate(self.plan.nodes)}
        labels = [
            label_of(p.step.node, numbers.get(id(p.step.node), -1), "its launch, not its work")
            for p in self._prepared
        ]
        name = f"launch stage {self.stage.number} ({self.stage.device})"
        self._recorder = recorder
        self._base = recorder.add_labels([*labels, Label(name, "launch", device="gpu")])
        self._codes = {id(p): self._base + k for k, p in enumerate(self._prepared)}
        self._names = {id(p): label.name for p, label in zip(self._prepared, labels, strict=True)}
        self._name = f"headrace {name}"
        self._push, self._pop = _ranges()

    def run(self, iteration: Iteration, queue: Queue) -> dict[int, Any]:
        """Queue all work of one iteration; see `GpuProgram.run`."""
        begin, worked = perf_counter_ns(), thread_time_ns()
        self._push(f"{self._name} of batch {iteration.number}")
        try:
            return super().run(iteration, queue)
        finally:
            self._pop()
            self._end(self._base + len(self._prepared), iteration, begin, worked)

    def _do(self, prepared: _Prepared, run: _Run) -> None:
        begin, worked = perf_counter_ns(), thread_time_ns()
        self._push(self._names[id(prepared)])
        try:
            super()._do(prepared, run)
        finally:
            self._pop()
            self._end(self._codes[id(prepared)], run.iteration, begin, worked)

    def _end(self, code: int, iteration: Iteration, begin: int, worked: int) -> None:
        self._recorder.here().note_since(code, iteration.number, iteration.size, 0, begin, worked)


def _ranges() -> tuple[Callable[[str], Any], Callable[[], Any]]:
    """Return the functions that begin and end an NVTX range: CuPy's, those of the library `nvtx`,
    or none.
    """
    for module, push, pop in (
        ("cupy.cuda.nvtx", "RangePush", "RangePop"),
        ("nvtx", "push_range", "pop_range"),
    ):
        try:
            found = importlib.import_module(module)
            return getattr(found, push), getattr(found, pop)
        except (ImportError, AttributeError):
            continue
    return _nothing, _nothing


def _nothing(*_: Any) -> None:
    pass
