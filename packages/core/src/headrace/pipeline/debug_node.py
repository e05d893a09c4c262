"""`DataNodeDebug`: an edge of the graph whose batch can be looked at."""

from __future__ import annotations

from typing import Any, NoReturn, Protocol

from headrace.errors import UsageError
from headrace.graph.data_node import DataNode
from headrace.graph.nodes import OpNode
from headrace.tracebacks import public_methods


class Batches(Protocol):
    """Holder of the batches of nodes."""

    def batch(self, edge: DataNode) -> Any:
        """The batch of an edge."""
        ...


@public_methods
class DataNodeDebug(DataNode):
    """A `DataNode` of a pipeline in debug mode, whose batch is there as soon as it is made.

    It is used as any other; `get` returns its batch.

    Parameters
    ----------
    name, device, source, index, ndim, dtype, layout
        As of `DataNode`.
    """

    __slots__ = ("_batches",)
    _batches: Batches | None

    @classmethod
    def made(cls, node: OpNode, index: int, batches: Batches | None) -> DataNodeDebug:
        """Output number `index` of `node`; without `batches` there is no data yet."""
        found = cls.of(node, index, len(node.outputs))
        assert isinstance(found, cls)
        found._batches = batches
        return found

    def _on(self, device: str) -> DataNode:
        moved = DataNodeDebug(
            self.name, device, self.source, self.index, self.ndim, self.dtype, self.layout
        )
        moved._batches = self._batches
        return moved

    def get(self) -> Any:
        """The batch: of a node that a branch makes, the samples that take the branch.

        Returns
        -------
        TensorListCPU or TensorListGPU

        Raises
        ------
        UsageError
            If it is a node of an iteration that is over.
        """
        return NO_DATA if self._batches is None else self._batches.batch(self)

    def __str__(self) -> str:
        lines = str(self.get()).splitlines()
        data = "\n    ".join(lines)
        return f'DataNodeDebug(\n    name="{self.name}",\n    data={data})'

    __repr__ = __str__


class NoData:
    """Placeholder for data while a definition is executed without any.

    Operations on it return it again; those that need a value, such as an `if`, fail.
    """

    def __repr__(self) -> str:
        return "<no data yet>"

    def __getattr__(self, name: str) -> NoData:
        if name.startswith("__"):  # NumPy and others ask for these to learn what it is
            raise AttributeError(name)
        return self

    def _same(self, *_: Any, **__: Any) -> NoData:
        return self

    __call__ = __getitem__ = __array_ufunc__ = _same
    for _name in (
        *("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor"),
        *("lt", "le", "gt", "ge", "eq", "ne", "neg", "pos", "abs", "invert"),
    ):
        locals()[f"__{_name}__"] = locals()[f"__r{_name}__"] = _same
    del _name

    __hash__ = object.__hash__

    def __format__(self, spec: str) -> str:
        return repr(self)

    def _none(self, *_: Any) -> NoReturn:
        raise UsageError("There is no data yet.")

    __bool__ = __len__ = __iter__ = __int__ = __float__ = __index__ = __array__ = _none


NO_DATA = NoData()
