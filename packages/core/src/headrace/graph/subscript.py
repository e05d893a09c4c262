"""Indexing of edges: what ``x[0, 1:n, newaxis]`` adds to the graph."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np

from headrace.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    ConversionError,
    NotYetSupportedError,
)
from headrace.graph.capture import call
from headrace.graph.data_node import DataNode
from headrace.graph.user_line import user_line
from headrace.operators.support.registry import find
from headrace.types import ScalarConstant


class NewAxis:
    """A new axis of extent 1 in an index, with a name for the layout if one is given."""

    def __init__(self, name: str | None = None) -> None:
        if name is not None and not isinstance(name, str):
            raise ArgumentTypeError(f"Axis name must be a single-character string, got {name!r}.")
        if name is not None and len(name) != 1:
            raise ArgumentValueError(f'Axis name must be a single-character string, got "{name}".')
        self.name = name

    def __call__(self, name: str | None = None) -> NewAxis:
        """A new axis called `name`."""
        return NewAxis(name)

    def __repr__(self) -> str:
        return "newaxis" if self.name is None else f'newaxis("{self.name}")'


newaxis = NewAxis()


def subscript(data: DataNode, index: Any) -> DataNode:
    """The part of each sample that `index` selects; indices may be edges, one for each sample.

    `None` stands for the full range, as in DALI.
    """
    items = index if isinstance(index, tuple) else (index,)
    arguments: dict[str, Any] = {}
    new_axes: list[int] = []
    names: list[str | None] = []
    axis = kept = 0
    for item in items:
        if isinstance(item, NewAxis):
            new_axes.append(kept + len(new_axes))
            names.append(item.name)
            continue
        if item is Ellipsis:
            raise NotYetSupportedError(
                f"Ellipsis in indexing is not implemented, used at {user_line()}; write `:` for "
                "each axis."
            )
        if item is None or isinstance(item, slice):
            if item is not None:
                bounds = {"lo": item.start, "hi": item.stop, "step": item.step}
                for part, value in bounds.items():
                    if value is not None:
                        arguments[f"{part}_{axis}"] = _bound(value)
            kept += 1
        else:
            arguments[f"at_{axis}"] = _position(item)
        axis += 1
    if any(n is not None for n in names) and None in names:
        raise ArgumentValueError(
            "New axis name must be specified for all axes or none, in the index used at "
            f"{user_line()}."
        )
    name = "_tensor_subscript" if arguments else "_subscript_dim_check"
    result = call(find(name), [data], {**arguments, "num_subscripts": axis})
    if not new_axes:
        return result  # type: ignore[no-any-return]
    extra = {} if names[0] is None else {"new_axis_names": "".join(n or "" for n in names)}
    return call(find("expand_dims"), [result], {"axes": new_axes, **extra})  # type: ignore[no-any-return]


def _position(value: Any) -> Any:
    if isinstance(value, DataNode):
        return value
    number = value.value if isinstance(value, ScalarConstant) else value
    if isinstance(number, np.ndarray) and number.ndim < 2 and number.size == 1:
        number = number.reshape(-1)[0]
    # As in DALI, real numbers are cut off towards zero, but not those of Python.
    cut_off = isinstance(number, np.floating) or number is not value
    if isinstance(number, (numbers.Integral, np.bool_)) or (
        cut_off and isinstance(number, numbers.Real)
    ):
        return int(number)  # type: ignore[arg-type]
    raise ConversionError(
        f"Invalid type for an index, used at {user_line()}: {value!r} is a "
        f"{type(value).__name__}; expected an integer, a slice, newaxis or a scalar `DataNode`."
    )


def _bound(value: Any) -> Any:
    return int(value) if isinstance(value, float) else _position(value)
