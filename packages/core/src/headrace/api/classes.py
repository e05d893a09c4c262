"""Makes the classes of ``headrace.ops``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headrace.api.functions import by_name, function_of
from headrace.api.modules import OperatorNamespace
from headrace.errors import ArgumentTypeError, MisusedArgumentError
from headrace.graph.capture import check_constants
from headrace.operators.support.current_stream import current_stream
from headrace.operators.support.docs import docstring_for
from headrace.operators.support.schema import OpSchema
from headrace.operators.support.schema_view import find_schema, schema_name
from headrace.operators.support.signature import class_name, signature_for
from headrace.tracebacks import public, public_methods
from headrace.types import CUDAStream


@public_methods
class OperatorInstance:
    """Base of every operator class: arguments now, inputs at the call."""

    _schema: OpSchema
    _function: Any
    schema_name: str
    """DALI's name of the operator: ``"readers__File"``."""
    _generated: bool

    def __init__(self, *positional: Any, **arguments: Any) -> None:
        arguments = by_name(self._schema, positional, arguments, f"ops.{type(self).__name__}")
        self._arguments = {k: v for k, v in arguments.items() if v is not None}
        check_constants(self._schema, self._arguments)

    @property
    def schema(self) -> OpSchema:
        """The operator's declaration."""
        return self._schema

    @property
    def device(self) -> str:
        """Device the operator runs on."""
        return str(self._arguments.get("device", "cpu"))

    @property
    def preserve(self) -> bool:
        """True if the operator is kept even when its outputs are unused."""
        return bool(self._arguments.get("preserve", False))

    def __call__(self, *inputs: Any, **arguments: Any) -> Any:
        """Add the operator to the pipeline under definition."""
        arguments = {k: v for k, v in arguments.items() if v is not None}
        for name in arguments:
            if name in self._arguments:
                raise MisusedArgumentError(
                    f"The argument `{name}` was already specified in `__init__` of "
                    f"`ops.{type(self).__name__}`."
                )
        return type(self)._function(*inputs, **self._completed({**self._arguments, **arguments}))

    def _completed(self, arguments: dict[str, Any]) -> dict[str, Any]:
        return arguments


class ExternalSourceInstance(OperatorInstance):
    """Base of `ops.ExternalSource`, whose parallel sources return samples unless told otherwise."""

    def __call__(self, *inputs: Any, **arguments: Any) -> Any:
        """Add the source to the pipeline under definition.

        Without `source`, each of several outputs is a node of its own, which is fed by itself.
        """
        given = {**self._arguments, **arguments}
        count = given.get("num_outputs")
        if count is None or given.get("source") is not None:
            return super().__call__(*inputs, **arguments)
        shared = {k: v for k, v in given.items() if k != "num_outputs"}
        return [
            type(self)._function(*inputs, **self._completed(_of_output(shared, k)))
            for k in range(count)
        ]

    def _completed(self, arguments: dict[str, Any]) -> dict[str, Any]:
        return {"batch": not arguments.get("parallel"), **arguments}


class FunctionInstance(OperatorInstance):
    """Base of the classes of operators that call a function of the user's."""

    @staticmethod
    def current_stream() -> CUDAStream:
        """The CUDA stream of the operator whose function calls this.

        Its `ptr` is 0 on the CPU, and outside of such functions.
        """
        return CUDAStream(current_stream())


def base_of(schema: OpSchema) -> type[OperatorInstance]:
    """Return the base class for the class of operator `schema`."""
    if schema.fed and schema.positional:
        return ExternalSourceInstance
    return FunctionInstance if schema.calls_user else OperatorInstance


def _of_output(arguments: dict[str, Any], number: int) -> dict[str, Any]:
    """Arguments of one output, of those that may be lists with an entry for each."""
    return {
        key: (value[number] if number < len(value) else None) if isinstance(value, list) else value
        for key, value in arguments.items()
    }


def class_of(schema: OpSchema, module: str, name: str | None = None) -> type[OperatorInstance]:
    """The class that adds operator `schema` to a pipeline when an instance of it is called."""
    name = name or class_name(schema)
    return type(
        name,
        (base_of(schema),),
        {
            "__module__": module,
            "__doc__": docstring_for(schema, "ops"),
            "__signature__": signature_for(schema, "ops"),
            "schema_name": schema_name(schema),
            "_generated": True,
            "_schema": schema,
            "_function": staticmethod(function_of(schema, module, name)),
        },
    )


@public
def python_op_factory(
    name: str,
    schema_name: str,
    internal_schema_name: str | None = None,
    generated: bool = True,
) -> type[OperatorInstance]:
    """A class of an operator under another name."""
    find_schema(schema_name)
    made = class_of(find_schema(internal_schema_name or schema_name), "headrace.ops", name)
    made.schema_name, made._generated = schema_name, generated
    return made


@public_methods
class Compose:
    """Operators applied one after the other, as one callable."""

    def __init__(self, operators: Sequence[Any]) -> None:
        for op in operators:
            if not isinstance(op, (OperatorInstance, Compose)):
                raise ArgumentTypeError(
                    f"Compose takes instances of `ops` classes, got a {type(op).__name__}."
                )
        self._operators = list(operators)

    def __call__(self, *inputs: Any) -> Any:
        """Apply all operators; the outputs of each are the inputs of the next."""
        values: Any = inputs
        for op in self._operators:
            result = op(*values)
            values = result if isinstance(result, (list, tuple)) else (result,)
        return values[0] if len(values) == 1 else list(values)


_namespace = OperatorNamespace(class_of, class_name)
install = _namespace.install
lookup = _namespace.lookup
names = _namespace.names
