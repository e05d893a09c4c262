"""Nodes of the graph: an operator with its arguments, and the edges it produces."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from headrace.errors import ErrorLocation
from headrace.graph.guards import Guard
from headrace.operators.support.schema import OpSchema

if TYPE_CHECKING:
    from headrace.graph.data_node import DataNode


_serials = itertools.count()


@dataclass(eq=False, slots=True)
class OpNode:
    """One use of an operator in a pipeline."""

    schema: OpSchema
    name: str
    device: str
    inputs: list[DataNode]
    args: dict[str, Any]
    """Converted constants of every declared argument; `None` where a tensor or nothing is given."""
    tensor_args: dict[str, DataNode]
    user_stack: tuple[str, ...]
    """The user's calls that created it, innermost first, each as ``file:line in function``."""
    seed: int | None = None
    """Seed of the random stream, where the user gave one."""
    explicit_name: bool = False
    preserve: bool = False
    outputs: list[DataNode] = field(default_factory=list)
    owner: object = None
    """The scope the node was created in; `None` outside any pipeline."""
    input_queue: Any = None
    """The input queue of an external source; `None` for every other operator."""
    serial: int = field(default_factory=_serials.__next__)
    """Position in the order of creation."""
    guard: Guard = ()
    """The samples of a batch for which the node runs; empty: all of them."""
    first_set: int | None = None
    """Of a call with several input sets, the serial number of the first one's node, in those of
    the others: all draw the same random numbers.
    """

    @property
    def draws_with(self) -> int:
        """Serial number of the node whose random numbers it draws, which may be its own."""
        return self.serial if self.first_set is None else self.first_set

    @property
    def user_line(self) -> str:
        """The user's line that created it."""
        return self.user_stack[0] if self.user_stack else "an unknown line"

    @property
    def output_device(self) -> str:
        """Device of the outputs: ``"cpu"`` or ``"gpu"``."""
        return "cpu" if self.device == "cpu" or self.schema.copies_to == "cpu" else "gpu"

    @property
    def arguments(self) -> list[DataNode]:
        """The edges it is called with: inputs, then arguments by name, which is DALI's order."""
        return [*self.inputs, *(self.tensor_args[name] for name in sorted(self.tensor_args))]

    @property
    def sources(self) -> list[DataNode]:
        """Every edge the node reads: those it is called with, and the predicates of its guard."""
        return [*self.arguments, *(term.predicate for term in self.guard)]

    def where(
        self, sample: int | None = None, source: str | None = None, raised: str = ""
    ) -> ErrorLocation:
        """The place of this node, for error messages."""
        return ErrorLocation(
            operator=self.schema.written or f"fn.{self.schema.name}",
            name=self.name if self.explicit_name else None,
            user_stack=self.user_stack,
            sample=sample,
            source=source or None,
            raised=raised or None,
        )
