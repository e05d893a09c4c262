"""Arithmetic on edges: what ``a + b`` and ``math.sqrt(a)`` add to the graph.

Each expression is one node of the operator `_arithmetic_generic_op`, whose argument `expression`
says what to compute of its inputs; `headrace.graph.fuse` makes one node of a tree of them.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable
from typing import Any

import numpy as np

from headrace.errors import ArgumentTypeError, ArgumentValueError, NumberOverflowError
from headrace.graph.capture import call, constant_node, make_node
from headrace.graph.data_node import DataNode
from headrace.graph.subscript import subscript
from headrace.graph.user_line import user_line
from headrace.operators.support.arithmetic.operations import OPERATIONS, Operation
from headrace.operators.support.registry import find
from headrace.tracebacks import public
from headrace.types import DALIDataType, ScalarConstant, to_dali_type
from headrace.types.arrays import is_array
from headrace.types.constant import constant_array

_INT32_BOUND = 1 << 31


def apply(operation: Operation, *operands: Any) -> DataNode:
    """The edge for `operation` on edges and constants, at least one of them an edge.

    Python numbers are int32, float32 or bool operands; NumPy scalars keep their type; arrays and
    lists become constant edges.
    """
    edges: list[DataNode] = []
    children: list[tuple[Any, ...]] = []
    for position, operand in enumerate(operands):
        if _is_several(operand):
            _check_holds_no_node(operation, position, operand)
            operand = constant_node(np.asarray(constant_array(operand)))
        if isinstance(operand, DataNode):
            children.append(("input", len(edges)))
            edges.append(operand)
        else:
            children.append(constant_operand(operation, operand))
    if not edges:
        raise ArgumentValueError(
            f"`{operation.shown}`, used at {user_line()}, got constants only; at least one operand "
            "must be a `DataNode`. Use Python's own arithmetic for constants."
        )
    expression = (operation.name, *children)
    return make_node(find("_arithmetic_generic_op"), edges, {"expression": expression}).outputs[0]


def _is_several(value: Any) -> bool:
    """Return True if `value` is a list or an array, rather than one number."""
    if isinstance(value, (DataNode, np.generic)):
        return False
    if isinstance(value, np.ndarray):
        return value.ndim > 0
    return isinstance(value, (list, tuple)) or is_array(value)


def _check_holds_no_node(operation: Operation, position: int, value: Any) -> None:
    if isinstance(value, (list, tuple)) and any(isinstance(each, DataNode) for each in value):
        kind = type(value).__name__
        raise ArgumentTypeError(
            f"The input {position} of operator `{operation.shown}` must be a `DataNode` or made of "
            f"numbers. Got a `{kind}` with nested `DataNode` at {user_line()}: take the node out "
            f"of the {kind}, or make one batch of several with `fn.stack(...)`."
        )


def constant_operand(operation: Operation, value: Any) -> tuple[str, Any, DALIDataType]:
    """The constant of an expression that stands for a number."""
    if isinstance(value, ScalarConstant):
        return "const", value.value, value.dtype
    if isinstance(value, (bool, np.bool_)):
        return "const", bool(value), DALIDataType.BOOL
    if isinstance(value, (np.generic, np.ndarray)) and value.dtype.kind in "biuf":
        return "const", value.item(), to_dali_type(value.dtype)
    if isinstance(value, numbers.Integral):
        if not -_INT32_BOUND <= int(value) < _INT32_BOUND:
            raise NumberOverflowError(
                f"The constant {value} of `{operation.shown}`, used at {user_line()}, does not fit "
                "into int32, the type of Python integers in a pipeline. Give it a type: "
                f"types.Constant({value}).int64()."
            )
        return "const", int(value), DALIDataType.INT32
    if isinstance(value, numbers.Real):
        return "const", float(value), DALIDataType.FLOAT
    raise ArgumentTypeError(
        f"Operand {value!r} of `{operation.shown}`, used at {user_line()}, is a "
        f"{type(value).__name__}; expected a `DataNode`, a number, a boolean or an array."
    )


def _forward(operation: Operation) -> Callable[..., DataNode]:
    def method(self: DataNode, *others: Any) -> DataNode:
        return apply(operation, self, *others)

    return method


def _reflected(operation: Operation) -> Callable[..., DataNode]:
    def method(self: DataNode, other: Any) -> DataNode:
        return apply(operation, other, self)

    return method


def _call(name: str, *inputs: Any, **kwargs: Any) -> DataNode:
    return call(find(name), inputs, kwargs)  # type: ignore[no-any-return]


def _getitem(self: DataNode, index: Any) -> DataNode:
    return subscript(self, index)


_getitem.__name__, _getitem.__qualname__ = "__getitem__", "DataNode.__getitem__"


def _install() -> None:
    """Give `DataNode` what makes further nodes: indexing, operators called by their names, and the
    methods of Python's data model that the table of operations names.
    """
    DataNode._call = staticmethod(_call)  # type: ignore[method-assign]
    setattr(DataNode, "__getitem__", public(_getitem))  # noqa: B010 - mypy knows it as a method
    for operation in OPERATIONS.values():
        for name, make in ((operation.dunder, _forward), (operation.reflected, _reflected)):
            if name is not None:
                method = make(operation)
                method.__name__ = name
                method.__qualname__ = f"DataNode.{name}"
                method.__doc__ = operation.doc
                setattr(DataNode, name, public(method))


_install()
