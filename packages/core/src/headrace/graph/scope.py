"""The pipeline under definition: a stack for each thread, and the counters that name nodes."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from headrace.errors import UsageError

if TYPE_CHECKING:
    from headrace.graph.data_node import DataNode
    from headrace.graph.nodes import OpNode

_local = threading.local()


class GraphScope:
    """Collects the operators created while it is current."""

    def __init__(self) -> None:
        self.nodes: list[OpNode] = []
        self._names: set[str] = set()
        self._unnamed = 0

    def add(self, node: OpNode) -> None:
        """Take `node` in."""
        if node.explicit_name and node.name in self._names:
            raise UsageError(
                f'Two operators are named "{node.name}"; the second is created at '
                f"{node.user_line}. Give each operator a name of its own."
            )
        self._names.add(node.name)
        self.nodes.append(node)

    def edge_of(self, value: object) -> DataNode | None:
        """The edge for an input that is a batch; `None` where batches are no inputs."""
        return None

    def auto_name(self, class_name: str) -> str:
        """A free name for an unnamed operator."""
        while True:
            name = f"__{class_name}_{self._unnamed}"
            self._unnamed += 1
            if name not in self._names:
                return name


def current() -> GraphScope | None:
    """The scope being defined on this thread."""
    stack = getattr(_local, "stack", None)
    return stack[-1] if stack else None


def push(scope: GraphScope) -> None:
    """Make `scope` the current one."""
    if not hasattr(_local, "stack"):
        _local.stack = []
    _local.stack.append(scope)


def pop() -> GraphScope:
    """Return to the scope before."""
    return _local.stack.pop()  # type: ignore[no-any-return]
