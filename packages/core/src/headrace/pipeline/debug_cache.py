"""Operators that a pipeline in debug mode keeps from one iteration to the next."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any

from headrace.graph.nodes import OpNode
from headrace.graph.seeds import assign_seeds
from headrace.kernels.cpu.philox_state import DrawSeed
from headrace.pipeline.debug_input import DirectInput
from headrace.pipeline.debug_operator import Inputs, SingleOperator

if TYPE_CHECKING:
    from headrace.pipeline.settings import Settings


class OperatorCache:
    """Operators that a pipeline keeps from one iteration to the next."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.base = secrets.randbits(63) if settings.seed is None else settings.seed
        self.nodes: list[OpNode] = []
        """In the order of their calls."""
        self.parts: dict[Any, SingleOperator] = {}
        """By the position of the call, or by position, output and device of what is moved."""
        self.seeds: dict[int, int] = {}
        """By the position of the call."""
        self.inputs: list[Inputs] = []
        self.is_complete = False
        """True if `nodes` are those of a whole iteration."""
        self.number = 0
        """Of the next iteration."""
        self.pending: list[tuple[str, tuple[Any, ...]]] = []
        """Data fed to sources that do not exist yet."""

    def take_traced(self, nodes: list[OpNode], order: list[OpNode]) -> None:
        """Take over the traced definition: `order` is as of a normal pipeline."""
        places = {id(node): k for k, node in enumerate(nodes)}
        unused = [node for node in nodes if node not in order]
        seeds = assign_seeds([*order, *unused], self.base)
        self.seeds = {places[key]: seed for key, seed in seeds.items()}
        self.nodes = nodes
        self.is_complete = True
        sources = [n for n in nodes if n.input_queue and not isinstance(n.input_queue, DirectInput)]
        self.add_inputs(sources)

    def add_inputs(self, sources: list[OpNode]) -> Inputs:
        """Add sources that are asked together; feed them the data that waits for them."""
        inputs = Inputs(self.settings, sources)
        self.inputs.append(inputs)
        names = {node.name for node in sources}
        for name, arguments in self.pending:
            if name in names:
                self.feed(inputs, name, arguments)
        self.pending = [entry for entry in self.pending if entry[0] not in names]
        return inputs

    def feed(self, inputs: Inputs, name: str, arguments: tuple[Any, ...]) -> None:
        """Give a batch to a source."""
        queue = inputs.queues.queue(name)
        queue.append(queue.prepare(*arguments))
        inputs.queues.note_change()

    def seed(self, position: int, created: list[OpNode]) -> int | None:
        """The seed of the operator called at `position`; `created` ends with it."""
        node = created[-1]
        if not node.schema.random:
            return None
        if node.seed is None and position not in self.seeds:
            self.seeds[position] = assign_seeds(created, self.base)[id(node)]
        seed = self.seeds[position] if node.seed is None else node.seed
        assert self.settings.batch_size is not None
        return DrawSeed.of_pipeline(seed, self.settings.batch_size)
