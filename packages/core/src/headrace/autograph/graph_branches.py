"""Conditions on the data of a pipeline: nodes with guards, and merges."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np

from headrace.autograph.choices import unfinished
from headrace.autograph.conversion import call
from headrace.autograph.tracing import tracing
from headrace.errors import ArgumentTypeError, DivergentBranchesError, MisusedArgumentError
from headrace.graph import branches
from headrace.graph.capture import constant_input, make_node
from headrace.graph.data_node import DataNode
from headrace.graph.user_line import user_line
from headrace.operators.generic.logical import restricted
from headrace.operators.support.registry import find
from headrace.types import ScalarConstant
from headrace.types.arrays import is_array
from headrace.types.constant import constant_array, constant_dtype


def define(definition: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call the definition of a pipeline, in which conditions may be on data."""
    module = getattr(definition, "__module__", None) or ""
    with tracing(GraphBranches(), module.partition(".")[0]), unfinished():
        outputs = call(definition)(*args, **kwargs)
    for output in outputs if isinstance(outputs, tuple) else (outputs,):
        source = output.source if isinstance(output, DataNode) else None
        if source is not None and not all(term.spreads for term in source.guard):
            raise DivergentBranchesError(
                f"The output `{output.name}`, made at {source.user_line}, exists only for "
                "the samples of a branch. What a branch changes other than by assigning variables, "
                "items or attributes in it (by `append` or `update`, in a function with "
                "`nonlocal`, or after an error) is not merged: assign it there, as in "
                "`images[i] = ...`."
            )
    return outputs


class GraphBranches:
    """Runs the branches of `DataNode`s: see `headrace.autograph.tracing.Branches`."""

    def is_data(self, value: object) -> bool:
        """Return True if `value` is an edge of the graph."""
        return isinstance(value, DataNode)

    def is_constant(self, value: object) -> bool:
        """Return True if `value` is a number or an array."""
        return isinstance(value, (bool, int, float, np.generic, ScalarConstant)) or is_array(value)

    def guarded(
        self, condition: DataNode, *, holds: bool
    ) -> contextlib.AbstractContextManager[None]:
        """Guard the nodes that are created in the block."""
        return branches.guarded(condition, holds=holds)

    def merge(self, condition: DataNode, if_true: Any, if_false: Any, name: str) -> DataNode:
        """Merge two edges, or constants that are made edges."""
        if_true, if_false = _of_one_type(if_true, if_false), _of_one_type(if_false, if_true)
        return branches.merge(condition, self._edge(if_true), self._edge(if_false), variable=name)

    def operand(self, value: Any, operation: str, side: str) -> DataNode:
        """An operand of `and` or `or`, which has to be boolean."""
        edge = value if self.is_data(value) else None
        if edge is None and self.is_constant(value):
            edge = self._edge(value)
        if edge is None:
            raise ArgumentTypeError(
                f"The {side} operand of `{operation}` at {user_line()} is {value!r}; the other one "
                "is data, so it must be data or a boolean."
            )
        self._check_on_the_cpu(edge, operation, f"the {side} argument")
        arguments = {"expression_name": operation, "expression_side": side}
        return make_node(find("_conditional.validate_logical"), [edge], arguments).outputs[0]

    def negated(self, value: DataNode) -> DataNode:
        """The node for `not`."""
        self._check_on_the_cpu(value, "not", "the argument")
        return make_node(find("_conditional.not_"), [value], {}).outputs[0]

    def _check_on_the_cpu(self, edge: DataNode, operation: str, what: str) -> None:
        if edge.device != "cpu":
            raise MisusedArgumentError(
                f"{restricted(operation, boolean=operation != 'not')} Got a GPU input as {what} in "
                f"logical expression, at {user_line()}. `.cpu()` moves it there."
            )

    def _edge(self, value: Any) -> DataNode:
        if isinstance(value, DataNode):
            return value
        edge = constant_input(value)
        assert edge is not None, "is_constant() is asked first"
        return edge


def _of_one_type(value: Any, other: Any) -> Any:
    """A Python number in the type of the number that the other branch has, if that holds it.

    Numbers that are given with a type keep it.
    """
    if type(value) not in (int, float) or type(other) in (type(value), int, bool):
        return value
    if not isinstance(other, (float, np.generic, ScalarConstant)):
        return value
    dtype = other.dtype if isinstance(other, ScalarConstant) else constant_dtype(other, None)
    return ScalarConstant(value, dtype) if constant_array(value, dtype, ()) == value else value
