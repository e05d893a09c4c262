"""`DataNode`: one edge of the graph, the symbol of a batch while a pipeline is being defined."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

from headrace.errors import ArgumentTypeError
from headrace.graph.misuse import array_arithmetic, instead_of
from headrace.graph.user_line import user_line
from headrace.tracebacks import public_methods
from headrace.types import DALIDataType, DataTypeLike, ScalarConstant

if TYPE_CHECKING:
    import numpy as np

    from headrace.graph.nodes import OpNode

    Operand: TypeAlias = (
        "DataNode | ScalarConstant | float | np.generic | np.ndarray | list[Any] | tuple[Any, ...]"
    )
    """Operand of `DataNode` arithmetic: another node, or a value that can become a constant."""


def not_iterable(cls: type) -> None:
    """Make objects of `cls` not iterable, also to ``isinstance`` with ``Iterable``."""
    cls.__iter__ = None  # type: ignore[attr-defined]
    Iterable._abc_caches_clear()  # type: ignore[attr-defined]  # it remembers what it has said


def _no_value() -> str:
    from headrace.graph import scope

    if scope.current() is None:
        return (
            "it has no value, as `fn.*` describes what a pipeline is to do. Outside of the "
            "definition of one, `headrace.experimental.dynamic` has the same operators and "
            "computes at once; in one, what depends on a sample's value"
        )
    return "it has no value while the pipeline is being defined; what depends on a sample's value"


@public_methods
class DataNode:
    """A batch that will flow along one edge of the pipeline's graph.

    Arithmetic, comparisons, indexing and `headrace.math` on it make further nodes. It has no
    value: what it stands for exists while the pipeline runs. Operators return nodes; no other code
    needs to make one.

    Parameters
    ----------
    name
        Its name in messages.
    device
        Device of the batch: ``"cpu"`` or ``"gpu"``.
    source, index
        The operator that makes the batch, and which of its outputs it is.
    ndim, dtype, layout
        Number of axes, element type and layout of the samples, where they were told.
    """

    __slots__ = ("device", "dtype", "index", "layout", "name", "ndim", "source")
    __hash__ = None  # type: ignore[assignment] # `==` makes a node, so there is no identity hash

    def __init__(
        self,
        name: str,
        device: str = "cpu",
        source: OpNode | None = None,
        index: int = 0,
        ndim: int | None = None,
        dtype: DALIDataType | None = None,
        layout: str | None = None,
    ) -> None:
        self.name = name
        self.device = device
        self.source = source
        self.index = index
        self.ndim = ndim
        self.dtype = dtype
        self.layout = layout

    @classmethod
    def of(cls, node: OpNode, index: int, count: int) -> DataNode:
        """Edge number `index` of the `count` out of `node`."""
        name = node.name if count == 1 else f"{node.name}[{index}]"
        return cls(name, node.output_device, node, index)

    def __str__(self) -> str:
        known = "".join(
            f", {key}={getattr(self, key)!r}"
            for key in ("ndim", "dtype", "layout")
            if getattr(self, key) is not None
        )
        source = self.source.name if self.source is not None else None
        return (
            f'DataNode(name="{self.name}", device="{self.device}", source="{source}", '
            f'index="{self.index}"{known})'
        )

    __repr__ = __str__

    def gpu(self) -> DataNode:
        """The same batch on the GPU. Whether there is one shows when the pipeline is built."""
        return self if self.device == "gpu" else self._on("gpu")

    def cpu(self) -> DataNode:
        """The same batch on the CPU."""
        return self if self.device == "cpu" else self._on("cpu")

    def _on(self, device: str) -> DataNode:
        return DataNode(
            self.name, device, self.source, self.index, self.ndim, self.dtype, self.layout
        )

    def shape(self, *, dtype: DataTypeLike | None = None, device: str = "cpu") -> DataNode:
        """The shape of each sample, a 1-D tensor of `dtype` (INT64 when not given) on `device`."""
        extra = {} if dtype is None else {"dtype": dtype}
        return self._call("_shape", self, device=device, **extra)

    def property(self, key: str, *, device: str = "cpu") -> DataNode:
        """The property `key` (``"layout"``, ``"source_info"``) as characters, uint8 on `device`."""
        return self._call("get_property", self, key=key, device=device)

    def source_info(self, *, device: str = "cpu") -> DataNode:
        """Return the file each sample was read from, as characters (uint8) on `device`."""
        return self.property("source_info", device=device)

    def _no(self, what: str) -> NoReturn:
        raise ArgumentTypeError(
            f'"DataNode" was {what} at {user_line()}. It has {_no_value()[7:]} is written with '
            "operators."
        )

    def _given_to(self, function: Any) -> NoReturn:
        name = function.__name__
        raise ArgumentTypeError(
            f'"DataNode" was given to `np.{name}` at {user_line()}. It is no NumPy array: '
            f"{_no_value()} is written with operators{instead_of(name)}. `fn.python_function` "
            "calls a function with the values of each sample."
        )

    def __bool__(self) -> bool:
        raise ArgumentTypeError(
            f'"DataNode" was used in conditional context at {user_line()}. To use conditional '
            "execution via `if` statements you need to specify `enable_conditionals=True` in "
            "`@headrace.pipeline_def` decorator; `and`, `or` and `not` on data need it, too. With "
            "it, this is code that is not converted: a class's `__init__`, a library, a function "
            "that is marked with `do_not_convert` or whose source is not there. Or let an argument "
            "choose for each sample, as in `fn.flip(images, horizontal=fn.random.coin_flip())`."
        )

    def __len__(self) -> int:
        self._no("asked for its length")

    if TYPE_CHECKING:
        # What makes further nodes: `headrace.graph.expressions` gives it to the class.
        @staticmethod
        def _call(name: str, *inputs: Any, **kwargs: Any) -> DataNode: ...
        def __getitem__(self, index: Any) -> DataNode: ...
        def __add__(self, other: Operand) -> DataNode: ...
        def __radd__(self, other: Operand) -> DataNode: ...
        def __sub__(self, other: Operand) -> DataNode: ...
        def __rsub__(self, other: Operand) -> DataNode: ...
        def __mul__(self, other: Operand) -> DataNode: ...
        def __rmul__(self, other: Operand) -> DataNode: ...
        def __truediv__(self, other: Operand) -> DataNode: ...
        def __rtruediv__(self, other: Operand) -> DataNode: ...
        def __floordiv__(self, other: Operand) -> DataNode: ...
        def __rfloordiv__(self, other: Operand) -> DataNode: ...
        def __mod__(self, other: Operand) -> DataNode: ...
        def __rmod__(self, other: Operand) -> DataNode: ...
        def __pow__(self, other: Operand) -> DataNode: ...
        def __rpow__(self, other: Operand) -> DataNode: ...
        def __neg__(self) -> DataNode: ...
        def __pos__(self) -> DataNode: ...
        def __abs__(self) -> DataNode: ...
        def __eq__(self, other: object) -> DataNode: ...  # type: ignore[override]
        def __ne__(self, other: object) -> DataNode: ...  # type: ignore[override]
        def __lt__(self, other: Operand) -> DataNode: ...
        def __le__(self, other: Operand) -> DataNode: ...
        def __gt__(self, other: Operand) -> DataNode: ...
        def __ge__(self, other: Operand) -> DataNode: ...
        def __and__(self, other: Operand) -> DataNode: ...
        def __rand__(self, other: Operand) -> DataNode: ...
        def __or__(self, other: Operand) -> DataNode: ...
        def __ror__(self, other: Operand) -> DataNode: ...
        def __xor__(self, other: Operand) -> DataNode: ...
        def __rxor__(self, other: Operand) -> DataNode: ...
        def __lshift__(self, other: Operand) -> DataNode: ...
        def __rlshift__(self, other: Operand) -> DataNode: ...
        def __rshift__(self, other: Operand) -> DataNode: ...
        def __rrshift__(self, other: Operand) -> DataNode: ...
        def __invert__(self) -> DataNode: ...

    # Python's word for "not iterable", which `isinstance(node, Iterable)` understands as well:
    # programs ask that to tell a node from a list of nodes.
    __iter__ = None

    if not TYPE_CHECKING:

        def __array__(self, dtype=None, copy=None):
            self._no("converted to a NumPy array")

        def __array_function__(self, function, types, args, kwargs):
            self._given_to(function)

        def __array_ufunc__(self, function, method, *inputs, **kwargs):
            # NumPy asks the node what `array + node` is.
            if method == "__call__" and len(inputs) == 2:
                found = array_arithmetic(function.__name__, *inputs, DataNode)
                if found is not NotImplemented:
                    return found
            return self._given_to(function)

        def __contains__(self, item):
            self._no("searched with `in`")

        def __float__(self):
            self._no("converted to float")

        def __int__(self):
            self._no("converted to int")
