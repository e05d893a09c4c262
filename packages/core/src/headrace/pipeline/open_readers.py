"""The opened readers of a pipeline."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headrace.errors import NoReaderError, did_you_mean, located
from headrace.graph.cached import CACHES
from headrace.graph.nodes import OpNode


def are_lazy(nodes: list[OpNode]) -> bool:
    """True if a reader is to be opened at its first use; the arguments of these are checked now."""
    lazy = [node for node in nodes if node.schema.reader and node.args.get("lazy_init")]
    for node in lazy:
        try:
            reader: Any = node.schema.cls(node.args)
            reader.check()
        except Exception as error:
            raise located(error, node.where()) from error
    return bool(lazy)


class OpenReaders:
    """Opens the readers of a plan, and knows them."""

    def __init__(
        self, nodes: list[OpNode], seeds: dict[int, int], batch_size: int, *, checkpointing: bool
    ) -> None:
        self.nodes = nodes
        self.by_node: dict[int, Any] = {}
        """By ``id(node)``."""
        for node in nodes:
            try:
                reader: Any = node.schema.cls(node.args)
                reader.checkpointing = checkpointing
                reader.open(batch_size, seeds.get(id(node), 0))
                if CACHES in node.args:
                    node.args[CACHES].attach(reader)
            except Exception as error:
                raise located(error, node.where()) from error
            self.by_node[id(node)] = reader

    def parsers(self) -> dict[int, int]:
        """By ``id(node)``, how much the parser of a reader is handed, where it has one."""
        return {k: len(r.parser_inputs()) for k, r in self.by_node.items() if r.parses}

    def apart(self) -> set[int]:
        """The ``id(node)`` of readers whose entries are brought in in a stage of its own."""
        return {k for k, r in self.by_node.items() if r.index.reads_apart}

    def meta(self, name: str | None = None) -> dict[str, Any]:
        """Sizes and shards of reader `name`, or of all readers by name."""
        named: dict[str, Any] = {node.name: self.by_node[id(node)].meta() for node in self.nodes}
        if name is None:
            return named
        if name not in named:
            raise NoReaderError(
                f"Operator {name} not found or does not expose valid metadata."
                f"{did_you_mean(str(name), named)} Readers of this pipeline: "
                f"{', '.join(named) or 'none'}. Name one with `name=`."
            )
        found: dict[str, Any] = named[name]
        return found

    def epoch(self, name: str) -> int:
        """Number of the epoch that reader `name` is in."""
        return next(int(self.by_node[id(n)].epoch) for n in self.nodes if n.name == name)

    def rest(self, name: str) -> tuple[int, int | None]:
        """Number of the epoch that reader `name` is in; and the samples of it that readers of
        other shards have left, if it goes on with these.
        """
        reader = next(self.by_node[id(n)] for n in self.nodes if n.name == name)
        return int(reader.epoch), reader.rest_size()

    def next_epoch(
        self, states: Mapping[int, Any] | None, at_least: Mapping[str, int] | None
    ) -> dict[str, int]:
        """Begin the next epoch."""
        shards = {}
        for node in self.nodes:
            reader = self.by_node[id(node)]
            if states is not None:
                reader.restore(states[id(node)])
            shards[node.name] = reader.next_epoch((at_least or {}).get(node.name, 0))
        return shards
