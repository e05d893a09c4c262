"""Classes of dynamic mode's operators: an operator keeps what is the same in all of its calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headrace.errors import ArgumentTypeError, ArgumentValueError, did_you_mean
from headrace.experimental.dynamic.devices import device as as_device
from headrace.experimental.dynamic.rng import RNG
from headrace.operators.support.schema import OpSchema
from headrace.operators.support.schema_view import SchemaView
from headrace.operators.support.signature import class_name
from headrace.tracebacks import public_methods

CLASSES = "headrace.experimental.dynamic._ops"
"""Module in which programs find the classes."""


@public_methods
class Operator:
    """An operator with what is the same in all of its calls."""

    _schema: SchemaView
    _schema_name: str
    _function: Any
    _arguments: frozenset[str]

    def __init__(
        self,
        max_batch_size: int | None = None,
        name: str | None = None,
        device: Any = None,
        **constants: Any,
    ) -> None:
        """Keep arguments of calls to come."""
        seeded = self._schema.HasRandomSeedArg() and constants.get("seed") is not None
        self._rng = RNG(seed=constants["seed"]) if seeded else None
        self._constants = {k: v for k, v in constants.items() if k != "seed" or not seeded}
        for argument in self._constants:
            if argument not in self._arguments:
                raise ArgumentTypeError(
                    f"{self._schema.OperatorName()}() got an unexpected keyword argument "
                    f"{argument!r}.{did_you_mean(argument, self._arguments)}"
                )
        as_device("gpu" if isinstance(device, str) and device == "mixed" else device)  # or refuse
        self._name = name
        self._device = device
        self._max_batch_size = max_batch_size

    def __call__(self, *inputs: Any, batch_size: int | None = None, **arguments: Any) -> Any:
        """Call the function; its arguments come before those that are kept."""
        most = self._max_batch_size
        if most is not None and batch_size is not None and batch_size > most:
            raise ArgumentValueError(
                f"`batch_size`={batch_size} is more than the {most} of {self}."
            )
        if self._rng is not None:
            arguments.setdefault("rng", self._rng)
        kept = {"device": self._device, **self._constants}
        return self._function(*inputs, batch_size=batch_size, **{**kept, **arguments})

    def __repr__(self) -> str:
        name = "" if self._name is None else f" {self._name!r}"
        return f"<operator {self._schema.Name()}{name} of dynamic mode>"


def operator_class(schema: OpSchema, function: Callable[..., Any]) -> type[Operator]:
    """The class whose instances call `function`, with DALI's names for what it knows of itself."""
    view = SchemaView(schema)
    name, path = class_name(schema), [part for part in schema.module.split(".") if part]
    members = {
        "__module__": ".".join([CLASSES, *path]),
        "__doc__": schema.doc,
        "_schema": view,
        "_schema_name": view.Name(),
        "_function": staticmethod(function),
        "_arguments": frozenset(schema.shown_args),
        "_fn_name": function.__name__,
        "_fn_path": schema.name,
        "_op_name": name,
        "_op_path": ".".join([*path, name]),
        "_is_reader": schema.reader,
        "_is_stateful": view.IsStateful(),
        "_has_random_state_arg": view.HasRandomStateArg(),
        "_supported_backends": frozenset(view.GetSupportedBackends()),
        "_generated": True,
    }
    return type(name, (Operator,), members)
