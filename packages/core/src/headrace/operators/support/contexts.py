"""Contexts of operators on the CPU: arguments, plans, memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.errors import located
from headrace.kernels.cpu.philox_state import drawn_with
from headrace.kernels.cpu.random import sample_uniforms
from headrace.operators.support.schema import RANDOM_STATE
from headrace.tensors.rows import Rows, pack_rows

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from headrace.executor.cpu.arena import Arena
    from headrace.executor.planning import SamplePlans
    from headrace.graph.nodes import OpNode

    Temp = Callable[[tuple[int, ...], DTypeLike], np.ndarray]
    """Hands out uninitialised scratch memory."""
    LoopPart = Callable[[np.ndarray, Temp], object]
    """Takes part in a loop; see `ChunkContext.loop`."""

_NONE: Mapping[str, Any] = {}


class SampleContext:
    """Context of an operator that works on one sample, besides its inputs.

    One serves a step on one worker, which points it at one sample of a chunk after the other.

    Attributes
    ----------
    args
        Arguments of the sample by name, converted; `None` where not given and without default. Of
        an operator with a `plan`, the constant ones only.
    seed
        Seed of the operator's random stream.
    iteration
        Number of the iteration since the pipeline was built.
    """

    __slots__ = (
        "_seed",
        "arena",
        "args",
        "buffers",
        "indices",
        "iteration",
        "loops",
        "node",
        "place",
        "plans",
        "position",
        "sources",
    )

    def __init__(
        self,
        node: OpNode,
        args: Any,
        arena: Arena,
        seed: Any,
        buffers: Sequence[Any] = (),
        indices: Sequence[int] = (),
        sources: Sequence[str] | None = None,
        plans: SamplePlans | None = None,
    ) -> None:
        self.node = node
        self.args = args
        self.arena = arena
        self.seed = seed
        self.iteration = 0
        self.buffers = buffers
        """Of each output its batch, or the frames of its sequence; `None` for scratch memory."""
        self.indices = indices
        """Positions in the batch of the samples of the chunk."""
        self.sources = sources
        """Sources of the samples, if known."""
        self.position = 0
        """Index of the current sample in the chunk."""
        self.plans = plans
        """The plans of the chunk, or of some of its samples, where the operator has any."""
        self.place = 0
        """Index of the current sample's row in the plan."""
        self.loops: Callable[[int, LoopPart, SampleContext], object] | None = None
        """Does a loop with threads that have nothing else to do, where there may be any."""

    @property
    def seed(self) -> Any:
        return drawn_with(vars(self.args).get(RANDOM_STATE), self._seed)

    @seed.setter
    def seed(self, seed: Any) -> None:
        self._seed = seed

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
        """Row of the plan's table for the current sample."""
        assert self.plans is not None
        return self.plans.rows[self.place]

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the first output, as `plan` gave it."""
        assert self.plans is not None
        return self.plans.shapes[0][self.place]

    def planned_shape(self, output: int) -> tuple[int, ...] | None:
        """Shape of an output, as `plan` gave it; `None` without a plan."""
        return None if self.plans is None else self.plans.shapes[output][self.place]

    @property
    def out(self) -> np.ndarray:
        """Memory for the only output, of the shape that `plan` gave and the type that `infer` gave:
        its row of the batch wherever possible. Not to be asked for by what returns a view.
        """
        plans = self.plans
        assert plans is not None
        shape, dtype = plans.shapes[0][self.place], plans.dtypes[0]
        buffer = self.buffers[0]
        return self.arena.empty(shape, dtype) if buffer is None else self.empty(shape, dtype)

    def empty(self, shape: tuple[int, ...], dtype: DTypeLike, output: int = 0) -> np.ndarray:
        """Uninitialised contiguous memory for an output, its row of the batch wherever possible."""
        buffer = self.buffers[output]
        if buffer is None:
            return self.arena.empty(shape, dtype)
        buffer.check(shape, dtype)
        return buffer.row(self.indices[self.position], shape)  # type: ignore[no-any-return]

    def empty_rows(
        self, indices: Sequence[int], shapes: np.ndarray, dtype: DTypeLike, output: int
    ) -> Rows:
        """The same for several samples of the batch, by their positions in it."""
        buffer = self.buffers[output]
        if buffer is None:
            return pack_rows(shapes, np.dtype(dtype), self.arena.empty)
        buffer.check(shapes[0], dtype)
        return buffer.rows_for(indices, shapes)  # type: ignore[no-any-return]

    def temp(self, shape: tuple[int, ...], dtype: DTypeLike) -> np.ndarray:
        """Uninitialised scratch memory that is this sample's until it has left the segment."""
        return self.arena.empty(shape, dtype)

    def uniforms(self, count: int) -> np.ndarray:
        """`count` float64 numbers in [0, 1), a function of (seed, operator, iteration, sample)."""
        return sample_uniforms(self.seed, self.iteration, self.index, count)

    def located(self, error: Exception) -> Exception:
        """`error` as this operator's, for a lazy value it handed on that turns out bad."""
        return located(error, self.node.where(self.index, self.source))

    def alone(self) -> ChunkContext:
        """The context of a chunk that has this sample only."""
        places = range(self.place, self.place + 1)
        return ChunkContext(self, (self.position,), (self.index,), places)


class ChunkContext:
    """Context of an operator that works on several samples, besides its inputs.

    Attributes
    ----------
    args
        Constant arguments by name, converted.
    indices
        As above.
    seed, iteration
        As of `SampleContext`.
    handed
        Memory of outputs that has been handed out.
    failures
        What `attempt` has met, by the number of the sample among these.
    """

    __slots__ = (
        "_context",
        "_converted",
        "_places",
        "_positions",
        "_producers",
        "_read",
        "_values",
        "args",
        "failures",
        "handed",
        "indices",
        "iteration",
    )

    def __init__(
        self,
        context: SampleContext,
        positions: Sequence[int],
        indices: Sequence[int],
        places: Sequence[int],
        values: Mapping[str, tuple[Sequence[Any], Callable[[Any], Any]]] = _NONE,
        read: Sequence[bool] | None = None,
        producers: Sequence[SampleContext] = (),
    ) -> None:
        self._context = context
        self._positions = positions
        self._producers = producers
        self.indices = indices
        self.iteration = context.iteration
        self._places = places
        self._values = values
        """Samples of each argument that differs by sample, and what converts one."""
        self._converted: dict[str, list[Any]] = {}
        self._read = read
        self.args = context.args
        self.handed: list[Rows] = []
        self.failures: dict[int, BaseException] = {}

    @property
    def seed(self) -> Any:
        if RANDOM_STATE in self._values:
            return drawn_with(self.values(RANDOM_STATE)[0])
        return self._context.seed

    def sample(self, k: int) -> SampleContext:
        """The context of one of them, for `SampleOperator.cpu`; it is good until the next."""
        context = self._context
        context.position, context.place = self._positions[k], self._places[k]
        for producer in self._producers:
            producer.position = context.position
        for name in self._values:
            setattr(context.args, name, self.values(name)[k])
        return context

    def attempt(self, k: int, function: Callable[..., Any], *args: Any) -> Any:
        """Call `function` with the context of one of them and `args`; if that raises, the sample
        has failed, and the others go on.
        """
        try:
            return function(self.sample(k), *args)
        except BaseException as error:  # whatever it is, a thread waits for the batch
            self.failures[k] = error
            return None

    def part(self, places: Sequence[int], args: Any, outputs: int) -> ChunkContext:
        """The context of some of them for another operator, with `args`, whose outputs are
        scratch memory.
        """
        own = self._context
        positions = [self._positions[k] for k in places]
        indices = [self.indices[k] for k in places]
        context = SampleContext(
            own.node, args, own.arena, own.seed, [None] * outputs, own.indices, own.sources
        )
        context.iteration = own.iteration
        return ChunkContext(context, positions, indices, range(len(places)))

    @property
    def table(self) -> tuple[Any, ...]:
        """Table of the plan: the rows of these samples."""
        plans = self._context.plans
        assert plans is not None
        return plans.table_of(self._places)

    def column(self, k: int) -> np.ndarray:
        """Column `k` of the table, as an array."""
        return np.ascontiguousarray(self.table[k])

    @property
    def records(self) -> np.ndarray:
        """Table of a plan that is one array: the rows of these samples."""
        plans = self._context.plans
        assert plans is not None
        return plans.records_of(self._places)

    def values(self, name: str) -> list[Any]:
        """Argument `name` of each sample, converted; of those that `plan` does not look at."""
        found = self._converted.get(name)
        if found is None:
            given = self._values.get(name)
            if given is None:
                return [getattr(self.args, name)] * len(self.indices)
            samples, convert = given
            found = self._converted[name] = [convert(each) for each in samples]
        return found

    def flags(self, name: str) -> np.ndarray:
        """The same of an argument that is true or false, bool ``(samples,)``."""
        samples, _ = self._values.get(name, (None, None))
        dense = samples.dense if isinstance(samples, Rows) else None
        if dense is None or dense.ndim != 1 or dense.dtype.kind not in "biu":
            dense = np.array(self.values(name))
        return dense != 0  # type: ignore[no-any-return]

    def is_read(self, output: int) -> bool:
        """True if an output is used; `None` may be returned for one that is not."""
        return self._read is None or self._read[output]

    @property
    def shapes(self) -> np.ndarray:
        """Shapes of the first output, int64 ``(samples, ndim)``, as `plan` gave them."""
        plans = self._context.plans
        assert plans is not None
        return plans.shapes_of(self._places)

    def planned_shape(self, k: int, output: int) -> tuple[int, ...] | None:
        """Shape of an output of one of them, as `plan` gave it; `None` without a plan."""
        plans = self._context.plans
        return None if plans is None else plans.shapes[output][self._places[k]]

    def out(self) -> Rows:
        """Uninitialised memory for the first output, of the shapes that `plan` has found."""
        plans = self._context.plans
        assert plans is not None
        return self.empty(self.shapes, plans.dtypes[0])

    def empty(self, shapes: np.ndarray, dtype: DTypeLike, output: int = 0) -> Rows:
        """Uninitialised memory for an output of all samples; `shapes` are ``(samples, ndim)``."""
        found = self._context.empty_rows(self.indices, shapes, dtype, output)
        self.handed.append(found)
        return found

    def temp(self, shape: tuple[int, ...], dtype: DTypeLike) -> np.ndarray:
        """Uninitialised scratch memory that is theirs until they have left the segment."""
        return self._context.arena.empty(shape, dtype)

    def loop(self, count: int, part: LoopPart) -> None:
        """Do a compiled loop, with the help of threads that have nothing else to do.

        `part`: called by each thread that takes part, with an array that counts those that are
        taken, int64 ``(1,)``, and what to get scratch memory from.
        """
        loops = self._context.loops
        if loops is None:
            part(np.zeros(1, np.int64), self.temp)
        else:
            loops(count, part, self._context)
