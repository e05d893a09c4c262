"""Makes the functions of ``headrace.fn``."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

from headrace.api.modules import OperatorNamespace
from headrace.errors import ArgumentTypeError, ArgumentValueError
from headrace.graph.capture import call, compose, convert_arguments, make_node
from headrace.graph.rewritten import is_rewritten
from headrace.graph.user_line import stack_level, user_line
from headrace.operators.support.composite import Composite
from headrace.operators.support.docs import docstring_for
from headrace.operators.support.schema import OpSchema
from headrace.operators.support.schema_view import schema_name
from headrace.operators.support.signature import signature_for
from headrace.tracebacks import public


def function_of(schema: OpSchema, module: str, name: str = "") -> Callable[..., Any]:
    """The function that adds operator `schema` to the pipeline under definition.

    `name` is what users call, where that is a class.
    """
    if schema.fed:
        made = external_source_of if schema.positional else input_of
        return _finish(made(schema), schema, module)

    run = compose if issubclass(schema.cls, Composite) else call
    called = f"{module}.{name or schema.name.rpartition('.')[2]}"

    @public
    def function(*inputs: Any, **arguments: Any) -> Any:
        if schema.deprecated is not None:
            _warn_of_old_name(called, schema.deprecated)
        if schema.positional and not schema.inputs:
            inputs, arguments = (), by_name(schema, inputs, arguments, f"fn.{schema.name}")
        return run(schema, inputs, arguments)

    return _finish(function, schema, module)


def _warn_of_old_name(called: str, new: str) -> None:
    # DALI's tests look for the first word, too.
    home = "pipeline" if new.startswith("DataNode.") else "fn"
    warnings.warn(
        f"WARNING: `{called}` is now deprecated. Use `headrace.{home}.{new}` instead.",
        DeprecationWarning,
        stacklevel=stack_level(),
    )


def _finish(function: Callable[..., Any], schema: OpSchema, module: str) -> Callable[..., Any]:
    function.__name__ = function.__qualname__ = schema.name.rpartition(".")[2]
    function.__module__ = module
    function.__doc__ = docstring_for(schema, "fn")
    function.__signature__ = signature_for(schema, "fn")  # type: ignore[attr-defined]
    function._schema_name = schema_name(schema)  # type: ignore[attr-defined]
    function._generated = True  # type: ignore[attr-defined]
    return function


def by_name(
    schema: OpSchema, positional: Sequence[Any], arguments: dict[str, Any], function: str
) -> dict[str, Any]:
    """All arguments by name: those of `function` that may be given by position have their place."""
    if len(positional) > len(schema.positional):
        most = len(schema.positional)
        raise ArgumentTypeError(
            f"`{function}`, used at {user_line()}, takes {most or 'no'} "
            f"positional argument{'' if most == 1 else 's'}, but {len(positional)} were given."
        )
    named = dict(zip(schema.positional, positional, strict=False))
    twice = sorted(named.keys() & arguments.keys())
    if twice:
        raise ArgumentTypeError(
            f"`{function}`, used at {user_line()}, got the argument `{twice[0]}` twice: by "
            "position and by name."
        )
    return {**named, **arguments}


def external_source_of(schema: OpSchema) -> Callable[..., Any]:
    """The function of ``fn.external_source``: its node carries a supply line."""
    from headrace.operators.external.external_source import make_input_queue
    from headrace.operators.support.external.traits import completed

    @public
    def function(*positional: Any, **arguments: Any) -> Any:
        arguments = completed(by_name(schema, positional, arguments, "fn.external_source"))
        name = arguments.get("name")
        known = {k: v for k, v in arguments.items() if k not in ("name", "device")}
        converted, _ = convert_arguments(schema, known, user_line())
        queue = make_input_queue(converted, name)
        if converted["parallel"] is True and is_rewritten(converted["source"]):
            raise _rewritten_source()
        node = make_node(schema, (), arguments, input_queue=queue)
        queue.name = node.name
        return node.outputs[0] if converted["num_outputs"] is None else list(node.outputs)

    return function


def input_of(schema: OpSchema) -> Callable[..., Any]:
    """The function behind an input that is fed and has no source."""
    from headrace.operators.external.external_source import make_input_queue

    @public
    def function(**arguments: Any) -> Any:
        known = {k: v for k, v in arguments.items() if k not in ("name", "device")}
        converted, _ = convert_arguments(schema, known, user_line())
        queue = make_input_queue(converted, arguments.get("name"))
        node = make_node(schema, (), arguments, input_queue=queue)
        queue.name = node.name
        return node.outputs[0]

    return function


def _rewritten_source() -> ArgumentValueError:
    return ArgumentValueError(
        "The `source` parameter that was passed to external source was created in a scope that was "
        f"converted for conditions on data, at {user_line()}. To allow the `source` to be "
        "correctly used in worker processes, which run what is written, it must remain "
        "unconverted: define it outside of the definition of the pipeline, or decorate what "
        "creates it with `@headrace.pipeline.do_not_convert`."
    )


_namespace = OperatorNamespace(function_of, lambda schema: schema.name.rpartition(".")[2])
install = _namespace.install
lookup = _namespace.lookup
names = _namespace.names
