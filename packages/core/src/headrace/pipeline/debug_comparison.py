"""Checks of debug mode that an iteration has the operators of the one before."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.errors import UsageError
from headrace.graph.nodes import OpNode
from headrace.pipeline.debug_operator import key_of
from headrace.types.enums import DALIEnum

ORDER = "Debug mode does not support changing the order of operators between iterations."


def check_same(first: OpNode | None, node: OpNode) -> None:
    """Check that `node` is the same as `first`, at this position in earlier iterations."""
    what = f"Unexpected operator `fn.{node.schema.name}`, called at {node.user_line}"
    if first is None:
        raise UsageError(f"{what}: the iterations before had no operators any more. {ORDER}")
    # Nodes not created by a call, such as an array among the outputs, have no line of their own.
    constant = node.schema.is_constant and node.schema.written is not None
    if first.schema.name != node.schema.name or not (constant or first.user_line == node.user_line):
        raise UsageError(
            f"{what}, in the place of `fn.{first.schema.name}`, called at {first.user_line}. "
            f"{ORDER}"
        )
    if constant:
        return
    place = f"`fn.{node.schema.name}`, called at {node.user_line}"
    if first.device != node.device:
        raise UsageError(f'{place}, is on "{node.device}" but was on "{first.device}" before.')
    if len(first.inputs) != len(node.inputs):
        raise UsageError(
            f"{place}, has {len(node.inputs)} inputs but had {len(first.inputs)} before."
        )
    if first.tensor_args.keys() != node.tensor_args.keys():
        raise UsageError(
            f"{place}, has a batch for the arguments {sorted(node.tensor_args)} but had one "
            f"for {sorted(first.tensor_args)} before."
        )
    for name, value in node.args.items():
        if node.input_queue is None and (isinstance(value, DALIEnum) or not callable(value)):
            before = first.args.get(name)
            if not _is_equal(value, before):
                raise UsageError(
                    f"Argument `{name}` of {place}, unexpectedly changed value from "
                    f"{before!r} to {value!r}."
                )


def can_run(first: OpNode | None, node: OpNode) -> bool:
    """Return True if the executor of `first` can run `node`."""
    if first is None or node.schema.reader or node.input_queue is not None:
        return first is not None
    same = first.schema is node.schema and _sharing(first) == _sharing(node)
    return same and all(_is_equal(value, first.args.get(name)) for name, value in node.args.items())


def _sharing(node: OpNode) -> list[int]:
    """Return the pattern of equal edges among the inputs of a node."""
    keys = [key_of(edge) for edge in node.sources]
    return [keys.index(key) for key in keys]


def _is_equal(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return np.array_equal(one, other, equal_nan=np.asarray(one).dtype.kind == "f")
    return one is other or bool(one == other) or (one != one and other != other)
