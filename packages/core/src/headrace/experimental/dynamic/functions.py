"""Makes the functions and readers of dynamic mode from the declarations of operators."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from headrace.api.modules import OperatorNamespace
from headrace.errors import ArgumentTypeError
from headrace.experimental.dynamic.arguments import check_fit
from headrace.experimental.dynamic.calling import call, compose
from headrace.experimental.dynamic.operator_classes import operator_class
from headrace.experimental.dynamic.reader_classes import reader_class
from headrace.operators.support import registry
from headrace.operators.support.composite import Composite
from headrace.operators.support.docs import docstring_for
from headrace.operators.support.listed import Listed
from headrace.operators.support.schema import OpSchema
from headrace.operators.support.signature import class_name, signature_for
from headrace.tracebacks import hide_engine


def function_of(schema: OpSchema, module: str) -> Callable[..., Any]:
    """The function that calls operator `schema`."""
    function: Callable[..., Any]
    run: Any = compose if issubclass(schema.cls, Composite) else call
    if schema.random:

        def function(
            *inputs: Any,
            batch_size: int | None = None,
            device: Any = None,
            rng: Any = None,
            **arguments: Any,
        ) -> Any:
            try:
                try:
                    return run(schema, inputs, batch_size, device, arguments, rng)
                except Exception:
                    _refuse_unfit(schema, inputs, arguments)
                    raise
            except Exception as error:
                hide_engine(error)
                raise

    else:

        def function(
            *inputs: Any, batch_size: int | None = None, device: Any = None, **arguments: Any
        ) -> Any:
            try:
                try:
                    return run(schema, inputs, batch_size, device, arguments)
                except Exception:
                    _refuse_unfit(schema, inputs, arguments)
                    raise
            except Exception as error:
                hide_engine(error)
                raise

    function.__name__ = function.__qualname__ = schema.name.rpartition(".")[2]
    function.__module__ = module
    function.__doc__ = docstring_for(schema, "dynamic")
    function.__signature__ = signature_for(schema, "dynamic")  # type: ignore[attr-defined]
    made = function._op_class = operator_class(schema, function)  # type: ignore[attr-defined]
    function._schema = made._schema  # type: ignore[attr-defined]
    function._schema_name = made._schema_name  # type: ignore[attr-defined]
    function._generated = True  # type: ignore[attr-defined]
    return function


def _refuse_unfit(schema: OpSchema, inputs: Sequence[Any], arguments: dict[str, Any]) -> None:
    """Raise for a call that does not fit the signature, before all else that is wrong with it.

    Calls are checked where they are new, after what is looked at in each.
    """
    try:
        check_fit(schema, sum(value is not None for value in inputs), arguments)
    except ArgumentTypeError as unfit:
        raise unfit from None


def is_offered(schema: OpSchema | Listed) -> bool:
    """True if dynamic mode has a function for an operator that is made from its declaration.

    Readers are classes, and random operators are in the module ``random``, which is written by
    hand.
    """
    return schema.dynamic and not schema.reader and schema.module != "random"


def is_reader(schema: OpSchema | Listed) -> bool:
    """True if dynamic mode has a class of a reader; old names have none."""
    return schema.reader and not schema.hidden


class _DynamicNamespace(OperatorNamespace):
    """The operators that dynamic mode offers: functions, and classes of readers."""

    def _offered(self) -> Iterable[OpSchema | Listed]:
        return (s for s in registry.listed() if is_offered(s) or is_reader(s))


def _make(schema: OpSchema, module: str) -> Any:
    return (reader_class if schema.reader else function_of)(schema, module)


def _name_of(schema: OpSchema | Listed) -> str:
    return class_name(schema) if schema.reader else schema.name.rpartition(".")[2]


_namespace = _DynamicNamespace(_make, _name_of)
install = _namespace.install
lookup = _namespace.lookup
names = _namespace.names
