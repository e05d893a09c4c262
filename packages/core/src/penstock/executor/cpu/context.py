"""What an operator is handed while it works: arguments, memory, random numbers."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.errors import located
from penstock.kernels.cpu.random import sample_uniforms

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from penstock.executor.cpu.arena import Arena
    from penstock.executor.cpu.batch import BatchBuffer
    from penstock.executor.planning import SamplePlans
    from penstock.graph.nodes import OpNode


class Context:
    """The `SampleContext` of one step on one worker, pointed at one sample after the other."""

    __slots__ = (
        "ahead",
        "arena",
        "args",
        "buffers",
        "index",
        "iteration",
        "node",
        "plans",
        "position",
        "row",
        "seed",
        "source",
    )

    def __init__(
        self, node: OpNode, args: SimpleNamespace, arena: Arena, seed: int, outputs: int
    ) -> None:
        self.node = node
        self.args = args
        self.arena = arena
        self.seed = seed
        self.index = 0
        self.iteration = 0
        self.source = ""
        self.ahead: Any = None
        """What a reader has read for this sample together with others."""
        self.buffers: list[BatchBuffer | None] = [None] * outputs
        self.row: Any = None
        self.plans: SamplePlans | None = None
        """The plans of the samples at hand, where the operator has any."""
        self.position = 0
        """Which of them is this sample's."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the first output, as `plan` gave it."""
        assert self.plans is not None
        return self.plans.shapes[0][self.position]

    @property
    def out(self) -> np.ndarray:
        """Memory for the only output, of the shape that `plan` gave."""
        assert self.plans is not None
        return self.empty(self.plans.shapes[0][self.position], self.plans.dtypes[0])

    def empty(self, shape: tuple[int, ...], dtype: DTypeLike, output: int = 0) -> np.ndarray:
        """Memory for an output: its row of the batch if it leaves the segment, else scratch."""
        buffer = self.buffers[output]
        if buffer is None:
            return self.arena.empty(shape, dtype)
        buffer.check(shape, dtype)
        return buffer.row(self.index, shape)

    def adopt(self, value: np.ndarray) -> np.ndarray:
        """Make `value`, which nothing else writes to, the first output without a copy."""
        buffer = self.buffers[0]
        if buffer is not None:
            buffer.check(value.shape, value.dtype)
            buffer.adopt_row(self.index, value)
        return value

    def temp(self, shape: tuple[int, ...], dtype: DTypeLike) -> np.ndarray:
        """Scratch memory that lives until the sample leaves the segment."""
        return self.arena.empty(shape, dtype)

    def uniforms(self, count: int) -> np.ndarray:
        """`count` float64 numbers in [0, 1) that depend on seed, iteration and sample only."""
        return sample_uniforms(self.seed, self.iteration, self.index, count)

    def located(self, error: Exception) -> Exception:
        """`error` with the place of this step and its sample."""
        return located(error, self.node.where(self.index, self.source))


class FrameContext:
    """The context of one frame of a sequence: outputs are slots of the sequence's memory."""

    __slots__ = ("_axis", "_count", "_frame", "_outputs", "_whole", "args", "plans")

    def __init__(self, whole: Any, count: int, axis: int, args: SimpleNamespace) -> None:
        self._whole = whole
        self._count = count
        self._axis = axis
        self._frame = 0
        self._outputs: dict[int, np.ndarray] = {}
        self.args = args
        self.plans: SamplePlans | None = None
        """The plans of all frames, where the operator has any."""

    def at(self, frame: int) -> FrameContext:
        """Point at frame number `frame`."""
        self._frame = frame
        return self

    @property
    def index(self) -> int:
        """Position of the sequence in its batch."""
        return self._whole.index  # type: ignore[no-any-return]

    @property
    def source(self) -> str:
        """File or key the sequence was read from."""
        return self._whole.source  # type: ignore[no-any-return]

    @property
    def seed(self) -> int:
        """Seed of the operator's stream: one draw serves all frames of a sequence."""
        return self._whole.seed  # type: ignore[no-any-return]

    @property
    def iteration(self) -> int:
        """Number of the iteration."""
        return self._whole.iteration  # type: ignore[no-any-return]

    def empty(self, shape: tuple[int, ...], dtype: DTypeLike, output: int = 0) -> np.ndarray:
        """Memory for this frame's output."""
        if self._axis:
            return self.temp(shape, dtype)
        slot = self.slot(output, shape, dtype)
        # A frame of another shape than the first has no place; whoever stores it says so.
        return slot if slot.shape == tuple(shape) else self.temp(shape, dtype)

    @property
    def row(self) -> Any:
        """What `plan` has worked out for this frame."""
        assert self.plans is not None
        return self.plans.rows[self._frame]

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the first output of this frame, as `plan` gave it."""
        assert self.plans is not None
        return self.plans.shapes[0][self._frame]

    @property
    def out(self) -> np.ndarray:
        """Memory for this frame's only output."""
        assert self.plans is not None
        return self.empty(self.plans.shapes[0][self._frame], self.plans.dtypes[0])

    def slot(self, output: int, shape: tuple[int, ...], dtype: DTypeLike) -> np.ndarray:
        """The place of this frame in the output sequence."""
        whole = self._outputs.get(output)
        if whole is None:
            full = (*shape[: self._axis], self._count, *shape[self._axis :])
            whole = self._outputs[output] = self._whole.empty(full, dtype, output)
        index = (slice(None),) * self._axis + (self._frame,)
        return whole[index]

    def output(self, number: int) -> np.ndarray | None:
        """The whole sequence of output `number`, if a frame has asked for it."""
        return self._outputs.get(number)

    def temp(self, shape: tuple[int, ...], dtype: DTypeLike) -> np.ndarray:
        """Scratch memory."""
        return self._whole.temp(shape, dtype)  # type: ignore[no-any-return]

    def uniforms(self, count: int) -> np.ndarray:
        """The sequence's random numbers: the same for each of its frames."""
        return self._whole.uniforms(count)  # type: ignore[no-any-return]

    def located(self, error: Exception) -> Exception:
        """`error` with the place of the operator and its sequence."""
        return self._whole.located(error)  # type: ignore[no-any-return]
