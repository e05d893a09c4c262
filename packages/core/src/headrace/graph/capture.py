"""Turn a call of ``fn.x`` into a node: check what was given, convert constants, name the node."""

from __future__ import annotations

import itertools
import numbers
import warnings
from collections.abc import Sequence
from os import PathLike
from typing import Any

import numpy as np

from headrace.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    MisusedArgumentError,
    NotYetSupportedError,
    UnknownArgumentError,
    did_you_mean,
)
from headrace.graph import scope
from headrace.graph.data_node import DataNode
from headrace.graph.guards import Guard, Term, current, guard_of
from headrace.graph.nodes import OpNode
from headrace.graph.user_line import stack_level, user_line, user_stack
from headrace.operators.support.argument_types import FloatArg, conversion_error
from headrace.operators.support.composite import without_none
from headrace.operators.support.operator import BatchOperator
from headrace.operators.support.registry import find
from headrace.operators.support.rules import check_required
from headrace.operators.support.schema import Arg, OpSchema
from headrace.operators.support.signature import class_name as class_name_of
from headrace.types import (
    DALIDataType,
    ScalarConstant,
    install_constant_node,
)
from headrace.types.arrays import is_array
from headrace.types.constant import constant_array, constant_dtype
from headrace.types.dtypes import is_enum_type

_detached_counter = itertools.count()
_CONSTANT = "_constant_tensor"
_OF_FIRST = "_of_first"


def call(schema: OpSchema, inputs: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Create the node for ``fn.<schema.name>(*inputs, **kwargs)`` and return its output edges.

    Lists of edges among `inputs` are multiple input sets: one node is made for each element.
    """
    if any(_is_input_set(i) for i in inputs):
        if schema.calls_user:
            raise ArgumentTypeError(
                f"`fn.{schema.name}`, used at {user_line()}, got a list of nodes: operators that "
                "call functions of Python do not support multiple input sets. Call it for each."
            )
        return _call_for_each_set(schema, inputs, kwargs)
    return _results(make_node(schema, inputs, kwargs))


def compose(schema: OpSchema, inputs: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Make the nodes that a `Composite` is made of, and return its output edges."""
    line = user_line()
    _check_input_count(schema, len(inputs))
    if any(_is_input_set(i) for i in inputs):
        raise ArgumentTypeError(
            f"`fn.{schema.name}`, used at {line}, got a list of nodes: call it for each."
        )
    edges = [None if v is None else to_edge(v, schema, k) for k, v in enumerate(inputs)]
    data = {k: v for k, v in kwargs.items() if isinstance(v, DataNode)}
    args, _ = convert_arguments(
        schema, {k: v for k, v in kwargs.items() if k not in (*data, "name", "device")}, line
    )
    for key in data:
        arg = _known_argument(schema, key, line)
        assert arg is not None
        if not arg.per_sample:
            _check_tensor_argument(schema, arg, data[key], line)
    check_required(schema, args, data, f"Operator `fn.{schema.name}`, used at {line}: ")
    names = {
        "name": _checked_name(schema, kwargs.get("name"), line),
        "device": kwargs.get("device"),
    }
    op: Any = schema.cls({**args, **data, **names})
    op.check_known(len(edges))

    def do(name: str, /, *inputs: Any, **arguments: Any) -> Any:
        return call(find(name), inputs, without_none(arguments))

    return op.compose(do, *edges)


def _results(node: OpNode) -> Any:
    schema = node.schema
    if schema.output_names is not None:
        names = [*schema.output_names(node.args), *(node.args.get("side_data") or ())]
        return dict(zip(names, node.outputs, strict=True))
    return node.outputs[0] if len(node.outputs) == 1 else list(node.outputs)


def make_node(
    schema: OpSchema,
    inputs: Sequence[Any],
    kwargs: dict[str, Any],
    input_queue: Any = None,
    first_set: int | None = None,
) -> OpNode:
    """Check a call and add its node, whose `first_set` is as given, to the current scope."""
    stack = user_stack()
    line = stack[0] if stack else "an unknown line"
    kwargs = dict(kwargs)
    name = _checked_name(schema, kwargs.pop("name", None), line)
    device = kwargs.pop("device", None)
    for key, value in kwargs.items():
        if value is not None:
            _known_argument(schema, key, line)
    _check_input_count(schema, len(inputs))
    edges = [to_edge(value, schema, position) for position, value in enumerate(inputs)]
    args, tensors = convert_arguments(schema, kwargs, line)
    if device is None and schema.given_readers is not None:
        from headrace.operators.readers.given_readers import device_of  # imports all of readers

        device = device_of(schema.given_readers(args), f"`fn.{schema.name}`, used at {line}")
    device = _check_device(schema, device, edges)
    if device != "cpu" and input_queue is None:
        _check_implementation(schema, device)
    _placed(schema, device, edges, inputs)
    uploaded = schema.reader and device == "gpu"  # readers read on the host
    if uploaded:
        device = "cpu"
    target = scope.current()
    auto = ""
    if name is None:
        class_name = "Constant" if schema.is_constant else class_name_of(schema)
        auto = (
            target.auto_name(class_name)
            if target is not None
            else f"__{class_name}_detached_{next(_detached_counter)}"
        )
    node = OpNode(
        schema=schema,
        name=auto if name is None else name,
        device=device,
        inputs=edges,
        args=args,
        tensor_args=tensors,
        user_stack=stack,
        seed=args.get("seed") if schema.random else None,
        explicit_name=name is not None,
        preserve=schema.is_kept or bool(args.get("preserve")),
        input_queue=input_queue,
        owner=target,
        guard=_guard(schema, edges, tensors),
        first_set=first_set,
    )
    count = schema.count_outputs(args)
    if schema.optional_adds_output:
        count += len(edges) - schema.min_inputs
    node.outputs = [DataNode.of(node, index, count) for index in range(count)]
    if uploaded:
        node.outputs = [edge._on("gpu") for edge in node.outputs]
    if target is not None:
        target.add(node)
    return node


def _guard(schema: OpSchema, inputs: list[DataNode], tensors: dict[str, DataNode]) -> Guard:
    if not (inputs or tensors or schema.calls_user) and issubclass(schema.cls, BatchOperator):
        return current()  # what it makes depends on how many samples the branch has
    branches = {}
    if schema.merges:
        branches = {0: Term(inputs[2], True), 1: Term(inputs[2], False)}
    return guard_of([*inputs, *tensors.values()], branches, f"Operator `fn.{schema.name}`")


def _checked_name(schema: OpSchema, name: Any, line: str) -> str | None:
    if name is not None and not isinstance(name, str):
        raise ArgumentTypeError(
            f"The name of `fn.{schema.name}`, used at {line}, must be a string, got {name!r}."
        )
    return name


def convert_arguments(
    schema: OpSchema, kwargs: dict[str, Any], line: str
) -> tuple[dict[str, Any], dict[str, DataNode]]:
    """Split keyword arguments into converted constants and tensor arguments."""
    constants = {a.name: (None if a.required else a.default) for a in schema.args.values()}
    tensors: dict[str, DataNode] = {}
    for key, value in kwargs.items():
        if value is None:
            continue
        arg = _known_argument(schema, key, line)
        if arg is None:
            _warn_of_useless_seed(schema)
            continue
        if arg.deprecated is not None:
            if arg.deprecated and kwargs.get(arg.deprecated) is not None:
                raise ArgumentTypeError(
                    f"Operator `fn.{schema.name}`, used at {line}, got an unexpected `{key}` "
                    f"beside `{arg.deprecated}`: the former is an old name of the latter. Leave "
                    "it out."
                )
            warnings.warn(arg.deprecation(), DeprecationWarning, stacklevel=stack_level())
        if isinstance(value, DataNode) and not arg.type.edges:
            edge = _check_tensor_argument(schema, arg, value, line)
            tensors[key] = _of_first(edge) if arg.of_batch else edge
            constants[key] = None
            continue
        converted = _convert_constant(schema, arg, value, line)
        if converted is DALIDataType.NO_TYPE and arg.default is None:
            converted = None  # DALI's own word for a type that is not given.
        constants[key] = converted
    if callable(schema.num_outputs):
        check_required(schema, constants, tensors, f"Operator `fn.{schema.name}`, used at {line}: ")
    return constants, tensors


def _of_first(edge: DataNode) -> DataNode:
    """An edge that gives all samples what the first one of `edge` has."""
    source = edge.source
    assert source is not None
    if source.schema.is_constant or source.schema.name == _OF_FIRST:
        return edge
    return make_node(find(_OF_FIRST), [edge], {}).outputs[0]


def check_constants(schema: OpSchema, arguments: dict[str, Any]) -> None:
    """Check the arguments of an operator's constructor, before there is a node."""
    line = user_line()
    _checked_name(schema, arguments.get("name"), line)
    for key, value in arguments.items():
        if value is None or key in ("name", "device"):
            continue
        arg = _known_argument(schema, key, line)
        if arg is None:
            continue
        if isinstance(value, DataNode) and not arg.type.edges:
            _check_tensor_argument(schema, arg, value, line)
        else:
            _convert_constant(schema, arg, value, line)


def _known_argument(schema: OpSchema, name: str, line: str) -> Arg | None:
    """The declaration of an argument; `None` for a seed that has no use."""
    arg = schema.args.get(name)
    if arg is None and name != "seed":
        raise UnknownArgumentError(
            f'Argument "{name}" is not defined for operator `fn.{schema.name}`, used at {line}.'
            f"{did_you_mean(name, schema.shown_args)} It takes: {', '.join(schema.shown_args)}."
        )
    return arg


def _warn_of_useless_seed(schema: OpSchema) -> None:
    # Up to version 1.x every operator of DALI took a seed, and programs still give one.
    warnings.warn(
        f"`fn.{schema.name}` draws no random numbers: its argument `seed` is deprecated and has "
        "no effect.",
        DeprecationWarning,
        stacklevel=stack_level(),
    )


def _convert_constant(schema: OpSchema, arg: Arg, value: Any, line: str) -> Any:
    place = f"Argument `{arg.name}` of operator `fn.{schema.name}`, used at {line}"
    try:
        converted = arg.type.constant(value)
    except (TypeError, ValueError) as error:
        hint = ""
        if arg.per_sample and arg.type.constant is FloatArg.constant and _is_pair(value):
            low, high = value
            hint = (
                " A value for each sample is drawn by "
                f"`{arg.name}=fn.random.uniform(range=[{low}, {high}])`."
            )
        raise conversion_error(value, arg.per_sample, f"{place}: {error}.{hint}") from error
    if arg.unsupported is not None and converted != arg.default:
        raise NotYetSupportedError(f"{place}: {arg.unsupported}.")
    return converted


def _is_pair(value: Any) -> bool:
    """Return True if `value` looks like a range of random values."""
    return (
        isinstance(value, (list, tuple))
        and len(value) == 2
        and all(isinstance(v, numbers.Real) for v in value)
    )


def _check_tensor_argument(schema: OpSchema, arg: Arg, value: DataNode, line: str) -> DataNode:
    if not arg.per_sample:
        raise ArgumentTypeError(
            f"Argument `{arg.name}` of operator `fn.{schema.name}`, used at {line}, must be the "
            f"same for all samples: it should not be a `DataNode` but a {arg.type.name}."
        )
    if value.device != "cpu":
        raise MisusedArgumentError(
            f"Invalid device \"{value.device}\" for argument '{arg.name}' of operator "
            f"'headrace.fn.{schema.name}'. Named arguments must be on CPU, as of the one used at "
            f"{line}; `.cpu()` moves it there."
        )
    return value


def _check_input_count(schema: OpSchema, count: int) -> None:
    low = schema.min_inputs
    high = (schema.max_inputs or 999) if schema.variadic else len(schema.inputs)
    if not low <= count <= high:
        expected = str(low) if low == high else f"from {low} to {high}"
        hint = ""
        if count > high and schema.args:
            names = "".join(f"{i.name}, " for i in schema.inputs)
            hint = (
                " Only inputs are given by position, arguments are given by name: "
                f"`fn.{schema.name}({names}{_example_argument(schema)}=...)`."
            )
        raise ArgumentValueError(
            f"Operator `fn.{schema.name}`, used at {user_line()}, expects {expected} "
            f"input{'' if expected == '1' else 's'}, but received {count}.{hint}"
        )


def _example_argument(schema: OpSchema) -> str:
    """The argument that one would give first."""
    required = [a.name for a in schema.args.values() if a.required]
    usual = [a.name for a in schema.args.values() if a.name in ("size", "crop", "angle", "axes")]
    return next(iter((*required, *usual, *schema.args)))


def _check_device(schema: OpSchema, device: str | None, edges: list[DataNode]) -> str:
    if device is None:
        device = "gpu" if any(e.device == "gpu" for e in edges) else "cpu"
    if device not in ("cpu", "gpu", "mixed"):
        raise MisusedArgumentError(
            f'Unsupported device type: "{device}" for `fn.{schema.name}`, used at {user_line()}. '
            'It can be "cpu", "gpu" or "mixed".'
        )
    if device not in schema.devices:
        raise MisusedArgumentError(
            f'Operator `fn.{schema.name}`, used at {user_line()}, has no "{device}" variant; it '
            f"runs on: {', '.join(schema.devices)}."
        )
    return device


def _check_implementation(schema: OpSchema, device: str) -> None:
    if not schema.cls.has_gpu():
        raise NotYetSupportedError(
            f'`fn.{schema.name}` with device="{device}", used at {user_line()}, is to come; this '
            'version has it on the CPU. Use device="cpu" and `.gpu()` after it.'
        )


def _placed(schema: OpSchema, device: str, edges: list[DataNode], given: Sequence[Any]) -> None:
    """Put each input where an operator on `device` wants it, in the list `edges` itself.

    What stands for constants goes wherever it is wanted. An edge is on the device where the user
    put it, and an error where the operator cannot take it there.
    """
    for position, edge in enumerate(edges):
        wanted = wanted_device(schema, device, position)
        if wanted == "any" or edge.device == wanted:
            continue
        literal = not isinstance(given[position], DataNode)
        if literal or schema.takes_any_device or (wanted == "cpu" and device == "gpu"):
            edges[position] = edge._on(wanted)
            continue
        move = "`.gpu()` moves it there" if wanted == "gpu" else "`.cpu()` moves it there"
        raise MisusedArgumentError(
            f"The input {position} for {device} operator `fn.{schema.name}`, used at "
            f'{user_line()}, is stored on incompatible device "{edge.device}". Valid device is '
            f'"{wanted}"; {move}.'
        )


def wanted_device(schema: OpSchema, device: str, position: int) -> str:
    """Return the device that input `position` of an operator on `device` must be on: ``"cpu"``,
    ``"gpu"`` or ``"any"``.
    """
    if device == "cpu":
        return "any" if schema.reads_metadata else "cpu"
    declared = schema.inputs[min(position, len(schema.inputs) - 1)].device
    if declared is not None:
        return declared
    return "cpu" if device == "mixed" else "gpu"


_READ_FILES = " `fn.readers.file(files=[...])` reads files."


def to_edge(value: Any, schema: OpSchema, position: int) -> DataNode:
    """An edge for positional input `value`: numbers, lists and arrays become constants."""
    if isinstance(value, DataNode):
        return value
    target = scope.current()
    edge = None if target is None else target.edge_of(value)
    if edge is None:
        edge = constant_input(value)
    if edge is None:
        raise ArgumentTypeError(
            f"Input {position} of `fn.{schema.name}`, used at {user_line()}, should be a "
            f"`DataNode` or something that can be made a constant, got {type(value).__name__}."
            + _READ_FILES
            * isinstance(value, str | PathLike)
        )
    return edge


def constant_input(value: Any) -> DataNode | None:
    """Return a constant edge for `value`, or `None` if it is not made of numbers."""
    if isinstance(value, ScalarConstant):
        return constant_node(constant_array(value.value, value.dtype, ()), value.dtype)
    if isinstance(value, (bool, np.bool_)):
        return constant_node(np.asarray(bool(value)))
    if isinstance(value, (int, float, list, tuple, np.generic)) or is_array(value):
        try:
            dtype = constant_dtype(value)
            return constant_node(constant_array(value), dtype if is_enum_type(dtype) else None)
        except TypeError:
            return None
    return None


def constant_node(
    array: np.ndarray,
    dtype: DALIDataType | None = None,
    layout: str | None = None,
    device: str | None = None,
    **arguments: Any,
) -> DataNode:
    """An edge that gives every sample the same `array`."""
    given = {"value": array, "dtype": dtype, "layout": layout, "device": device, **arguments}
    return make_node(find(_CONSTANT), [], given).outputs[0]


install_constant_node(constant_node)


def _is_input_set(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(v, DataNode) for v in value)


def _call_for_each_set(schema: OpSchema, inputs: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    lengths = {len(i) for i in inputs if _is_input_set(i)}
    if len(lengths) != 1:
        raise ArgumentValueError(
            "All argument lists for multiple input sets used with operator "
            f"`fn.{schema.name}` must have the same length, got {sorted(lengths)} at {user_line()}."
        )
    count = lengths.pop()
    name = kwargs.get("name")
    nodes: list[OpNode] = []
    for k in range(count):
        if k and isinstance(name, str):
            kwargs = {**kwargs, "name": f"{name}_{k}"}
        chosen = [i[k] if _is_input_set(i) else i for i in inputs]
        first = nodes[0].serial if nodes else None
        nodes.append(make_node(schema, chosen, kwargs, first_set=first))
    results = [_results(node) for node in nodes]
    if count == 1:
        return results[0]
    if results and isinstance(results[0], list):
        return [list(column) for column in zip(*results, strict=True)]
    return results
