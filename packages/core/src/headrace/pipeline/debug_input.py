"""Inputs of operators in debug mode that are batches and no nodes."""

from __future__ import annotations

from typing import Any

from headrace.errors import MisusedArgumentError
from headrace.graph import guards
from headrace.graph.capture import make_node
from headrace.graph.data_node import DataNode
from headrace.graph.user_line import user_line
from headrace.operators.support.registry import find
from headrace.tensors.gpu.tensor_list import TensorListGPU


class DirectInput:
    """The batch of an input that is no node, in place of the supply line of a source."""

    name = ""

    def __init__(self, batch: Any) -> None:
        self.batch = batch

    @classmethod
    def edge(cls, value: Any, batch: Any) -> DataNode:
        """The edge of such an input."""
        if guards.current():
            raise MisusedArgumentError(
                f"A batch that no operator made is used in a branch, at {user_line()}. Debug mode "
                "cannot tell which samples it has: hand it to an operator outside of the branch."
            )
        on_gpu = isinstance(value, TensorListGPU)
        arguments = {"device": "gpu" if on_gpu else "cpu"}
        return make_node(find("external_source"), (), arguments, cls(batch)).outputs[0]
