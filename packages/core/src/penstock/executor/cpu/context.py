"""What an operator is handed while it works: arguments, memory, random numbers."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.errors import located
from penstock.kernels.cpu.random import sample_uniforms
from penstock.tensors.rows import Rows, pack_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import DTypeLike

    from penstock.executor.cpu.arena import Arena
    from penstock.executor.cpu.batch import BatchBuffer
    from penstock.executor.planning import SamplePlans
    from penstock.executor.step import Step
    from penstock.graph.nodes import OpNode


class Context:
    """The `SampleContext` of one step on one worker, pointed at one sample after the other."""

    __slots__ = (
        "arena",
        "args",
        "buffers",
        "indices",
        "iteration",
        "node",
        "place",
        "plans",
        "position",
        "seed",
        "sources",
    )

    def __init__(
        self, node: OpNode, args: SimpleNamespace, arena: Arena, seed: int, outputs: int
    ) -> None:
        self.node = node
        self.args = args
        self.arena = arena
        self.seed = seed
        self.iteration = 0
        self.buffers: list[BatchBuffer | None] = [None] * outputs
        self.indices: Sequence[int] = ()
        """Positions in the batch of the samples of the chunk."""
        self.sources: Sequence[str] | None = None
        """Where these were read from, if anywhere."""
        self.position = 0
        """Which of them is at hand."""
        self.plans: SamplePlans | None = None
        """The plans of the chunk, or of some of its samples, where the operator has any."""
        self.place = 0
        """Which of them is that of the sample at hand."""

    @property
    def index(self) -> int:
        """Position of the sample in its batch."""
        return self.indices[self.position]

    @property
    def source(self) -> str:
        """File or key the sample was read from; empty where unknown."""
        return "" if self.sources is None else self.sources[self.position]

    @property
    def row(self) -> Any:
        """What `plan` has worked out for the sample."""
        assert self.plans is not None
        return self.plans.rows[self.place]

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the first output, as `plan` gave it."""
        assert self.plans is not None
        return self.plans.shapes[0][self.place]

    @property
    def out(self) -> np.ndarray:
        """Memory for the only output, of the shape that `plan` gave."""
        assert self.plans is not None
        return self.empty(self.plans.shapes[0][self.place], self.plans.dtypes[0])

    def empty(self, shape: tuple[int, ...], dtype: DTypeLike, output: int = 0) -> np.ndarray:
        """Memory for an output: its row of the batch if it leaves the segment, else scratch."""
        buffer = self.buffers[output]
        if buffer is None:
            return self.arena.empty(shape, dtype)
        buffer.check(shape, dtype)
        return buffer.row(self.indices[self.position], shape)

    def temp(self, shape: tuple[int, ...], dtype: DTypeLike) -> np.ndarray:
        """Scratch memory that lives until the sample leaves the segment."""
        return self.arena.empty(shape, dtype)

    def uniforms(self, count: int) -> np.ndarray:
        """`count` float64 numbers in [0, 1) that depend on seed, iteration and sample only."""
        return sample_uniforms(self.seed, self.iteration, self.index, count)

    def located(self, error: Exception) -> Exception:
        """`error` with the place of this step and its sample."""
        return located(error, self.node.where(self.index, self.source))


class ChunkContext:
    """The `ChunkContext` of one step on one worker, for some samples of its chunk.

    Parameters
    ----------
    context
        The step's.
    indices
        Positions of the samples in their batch.
    places
        Of each sample, which of the plans is its own.
    values
        Arguments that differ from sample to sample, converted, by name.
    read
        Of each output, whether anybody reads it.
    """

    __slots__ = ("_context", "_indices", "_places", "_read", "_values", "args", "handed")

    def __init__(
        self,
        context: Context,
        indices: Sequence[int],
        places: Sequence[int],
        values: dict[str, list[Any]],
        read: Sequence[bool],
    ) -> None:
        self._context = context
        self._indices = indices
        self._places = places
        self._values = values
        self._read = read
        self.args = context.args
        self.handed: list[Rows] = []
        """Memory of outputs that has been handed out."""

    @property
    def table(self) -> tuple[Any, ...]:
        """What `plan` has worked out: columns of the samples."""
        plans = self._context.plans
        assert plans is not None
        table, places = plans.planned.table, self._places
        if isinstance(places, range):
            return tuple([column[places.start : places.stop] for column in table])
        return tuple(
            [
                c[list(places)] if isinstance(c, np.ndarray) else [c[k] for k in places]
                for c in table
            ]
        )

    def values(self, name: str) -> list[Any]:
        """Argument `name` of each sample, converted."""
        found = self._values.get(name)
        return [getattr(self.args, name)] * len(self._indices) if found is None else found

    def is_read(self, output: int) -> bool:
        """Whether anybody reads an output."""
        return self._read[output]

    @property
    def shapes(self) -> np.ndarray:
        """Shapes of the first output, as `plan` gave them."""
        plans = self._context.plans
        assert plans is not None
        found, places = plans.planned.shapes[0], self._places
        if isinstance(places, range):
            return found[places.start : places.stop]
        return found[list(places)]

    def out(self) -> Rows:
        """Memory for the first output, of the shapes that `plan` gave."""
        plans = self._context.plans
        assert plans is not None
        return self.empty(self.shapes, plans.dtypes[0])

    def empty(self, shapes: np.ndarray, dtype: DTypeLike, output: int = 0) -> Rows:
        """Memory for an output: rows of the batch if it leaves the segment, else scratch."""
        buffer = self._context.buffers[output]
        if buffer is None:
            found = pack_rows(shapes, np.dtype(dtype), self._context.arena.empty)
        else:
            buffer.check(shapes[0], dtype)
            found = buffer.rows_for(self._indices, shapes)
        self.handed.append(found)
        return found

    def temp(self, shape: tuple[int, ...], dtype: DTypeLike) -> np.ndarray:
        """Scratch memory that lives until the samples leave the segment."""
        return self._context.arena.empty(shape, dtype)


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


def context_of(step: Step, arena: Arena) -> Context:
    """A context of a step for one worker."""
    return Context(step.node, SimpleNamespace(**step.args), arena, step.seed, len(step.outputs))
