"""Operators of dynamic mode as classes, by the names of DALI's own module for them.

Dynamic mode is functions, and classes for readers. What is here is for programs that reach for
DALI's classes: an operator keeps what is the same in all calls, and calling it calls the function.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from functools import reduce
from typing import Any

from headrace.api.modules import OperatorNamespace
from headrace.errors import ArgumentTypeError, ArgumentValueError, did_you_mean
from headrace.experimental.dynamic.functions import function_of, is_offered
from headrace.experimental.dynamic.reader import Reader as Reader
from headrace.experimental.dynamic.rng import RNG
from headrace.operators.support import registry
from headrace.operators.support.listed import Listed
from headrace.operators.support.schema import OpSchema
from headrace.operators.support.schema_view import SchemaView
from headrace.operators.support.signature import class_name
from headrace.tracebacks import public, public_methods

_ROOT = "headrace.experimental.dynamic"


@public_methods
class Operator:
    """An operator with what is the same in all of its calls."""

    _schema: SchemaView
    _function: Any
    _arguments: frozenset[str]

    def __init__(
        self,
        max_batch_size: int | None = None,
        name: str | None = None,
        device: Any = None,
        **constants: Any,
    ) -> None:
        """Keep arguments of calls to come.

        Parameters
        ----------
        max_batch_size
            Most samples that a call may be given in `batch_size`.
        name
            What the operator is called in its representation.
        device
            As in the call of the function.
        **constants
            Arguments of the function. Random operators take a `seed` as well, for calls without
            `rng`.

        Raises
        ------
        ArgumentTypeError
            If there is no such argument.
        """
        seeded = self._schema.HasRandomSeedArg() and constants.get("seed") is not None
        self._rng = RNG(seed=constants["seed"]) if seeded else None
        self._constants = {k: v for k, v in constants.items() if k != "seed" or not seeded}
        for argument in self._constants:
            if argument not in self._arguments:
                raise ArgumentTypeError(
                    f"{self._schema.OperatorName()}() got an unexpected keyword argument "
                    f"{argument!r}.{did_you_mean(argument, self._arguments)}"
                )
        self._name = name
        self._device = device
        self._max_batch_size = max_batch_size

    def __call__(self, *inputs: Any, batch_size: int | None = None, **arguments: Any) -> Any:
        """Call the function; its arguments come before those that are kept.

        Raises
        ------
        ArgumentValueError
            If there are more samples than was said before.
        """
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


def _class_of(schema: OpSchema, module: str) -> type[Operator]:
    members = {
        "__module__": module,
        "__doc__": schema.doc,
        "_schema": SchemaView(schema),
        "_function": staticmethod(function_of(schema, _ROOT)),
        "_arguments": frozenset(schema.args),
    }
    return type(class_name(schema), (Operator,), members)


def _has_class(schema: OpSchema | Listed) -> bool:
    return is_offered(schema) or (schema.dynamic and schema.module == "random")


class _ClassNamespace(OperatorNamespace):
    """The operators that dynamic mode has functions for."""

    def _offered(self) -> Iterable[OpSchema | Listed]:
        return (s for s in registry.listed() if _has_class(s))


_namespace = _ClassNamespace(_class_of, class_name)


def _all_of(kind: str) -> list[Any]:
    """All functions, or all classes but those of readers."""
    shown = [s for s in registry.listed() if _has_class(s) and not s.hidden]
    if kind == "functions":
        root = importlib.import_module(_ROOT)
        return [reduce(getattr, s.name.split("."), root) for s in shown]
    here = importlib.import_module(__name__)
    return [
        reduce(getattr, [*filter(None, s.module.split(".")), class_name(s)], here) for s in shown
    ]


@public
def __getattr__(name: str) -> Any:
    if name in ("_all_functions", "_all_ops"):
        return _all_of("functions" if name == "_all_functions" else "classes")
    return _namespace.lookup(__name__, name)


def __dir__() -> list[str]:
    return _namespace.names(__name__)


_namespace.install(__name__)
