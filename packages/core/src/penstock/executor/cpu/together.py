"""Several samples in one call, for operators that can do them so: see `Operator.cpu_together`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.executor.cpu.batch import cut_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import DTypeLike

    from penstock.executor.cpu.arena import Arena
    from penstock.executor.cpu.batch import BatchBuffer
    from penstock.executor.plan import Plan
    from penstock.executor.step import Step


def function_for_several(step: Step, plan: Plan) -> Callable[..., Any] | None:
    """What does several samples of `step` at once, if that is better than one after the other.

    It is where they leave the stage at once. Where further operators follow, a sample is better
    carried on while it is hot in the cache.
    """
    if step.tensor_args or not step.outputs or not plan.leaves_stage[step.outputs[0]]:
        return None
    return getattr(step.op, "cpu_together", None)


class Together:
    """The `SamplesContext` of one step on one worker."""

    __slots__ = ("_arena", "_buffers", "_indices", "_read", "args")

    def __init__(
        self,
        args: Any,
        arena: Arena,
        buffers: Sequence[BatchBuffer | None],
        indices: Sequence[int],
        read: Sequence[bool],
    ) -> None:
        self.args = args
        self._read = read
        self._arena = arena
        self._buffers = buffers
        self._indices = indices

    def empty(
        self, shapes: np.ndarray, dtype: DTypeLike, output: int = 0
    ) -> tuple[np.ndarray, np.ndarray, list[np.ndarray | None]]:
        """Uninitialised memory for an output of all samples: see `SamplesContext`."""
        buffer = self._buffers[output]
        if buffer is None:
            return cut_rows(shapes, np.dtype(dtype), self._arena.empty)
        buffer.check(shapes[0], dtype)
        return buffer.rows_for(self._indices, shapes)

    def is_read(self, output: int) -> bool:
        """Whether anybody reads an output."""
        return self._read[output]
