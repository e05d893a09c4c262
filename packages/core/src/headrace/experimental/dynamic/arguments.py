"""Arguments of calls: which constants are the same, checks and conversions."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    NotYetSupportedError,
    did_you_mean,
)
from headrace.experimental.dynamic.dtypes import BY_NAME, DType
from headrace.experimental.dynamic.invariants import is_invariant, plain
from headrace.experimental.dynamic.operations import ConfiguredOperator
from headrace.graph.user_line import stack_level
from headrace.operators.support.argument_types import DataTypeArg, conversion_error
from headrace.operators.support.rules import check_choice
from headrace.types import DALIDataType, DALIImageType, DALIInterpType, as_data_type

if TYPE_CHECKING:
    from headrace.experimental.dynamic.values import ValueReference
    from headrace.operators.support.schema import Arg, OpSchema

_MODULE = "headrace.experimental.dynamic"
_NOT_ARGUMENTS = frozenset(("preserve", "seed", "bytes_per_sample_hint"))
PLAIN = frozenset((int, str, bool, type(None), DALIDataType, DALIImageType, DALIInterpType, DType))
"""Types of constants that are equal only where operators cannot tell them apart."""
_NEVER_CHANGE = (np.generic, np.dtype, type)


def key_of(value: Any) -> Any:
    """`value` such that values which operators could tell apart are not equal."""
    kind = type(value)
    if kind is float:
        return (float, value) if value else (float, str(value))  # 0.0 == -0.0
    if kind in PLAIN:
        return kind, value
    if kind is list or kind is tuple:
        return kind, tuple([key_of(v) for v in value])
    if kind is np.ndarray:
        return kind, value.dtype, value.shape, value.tobytes()
    if is_invariant(value):
        return key_of(plain(value))
    # What may change without becoming another object cannot be looked up by what it is.
    return (kind, value) if isinstance(value, _NEVER_CHANGE) else []


def element_type(schema: OpSchema, name: str, value: Any) -> Any:
    """Convert `value` to an element type, if one is wanted and it names one; else return
    `value`.
    """
    arg = schema.args.get(name)
    if arg is None or arg.type is not DataTypeArg:
        return value
    try:
        return as_data_type(value)
    except (ArgumentTypeError, ArgumentValueError):
        return value  # the call is refused with all that is said of it


def made(
    schema: OpSchema,
    device: str,
    constants: dict[str, Any],
    tensors: Sequence[tuple[str, ValueReference]],
    inputs: int,
) -> ConfiguredOperator:
    """Check the arguments of a call and convert the constant ones."""
    tensor_names = [key for key, _ in tensors]
    check_fit(schema, inputs, {**constants, **dict.fromkeys(tensor_names, tensors)})
    if schema.deprecated is not None:
        warnings.warn(
            f"WARNING: `{_MODULE}.{schema.name}` is now deprecated. Use "
            f"`{_MODULE}.{schema.deprecated}` instead.",
            DeprecationWarning,
            stacklevel=stack_level(),
        )
    args = {a.name: (None if a.required else a.default) for a in schema.args.values()}
    for key, value in constants.items():
        value = plain(value)
        if value is not None and key not in tensor_names:
            args[key] = converted(schema, schema.args[key], value)
    for key in tensor_names:
        _check_tensor_argument(schema, schema.args[key])
        args[key] = None
    return ConfiguredOperator(schema, device, args)


def check_fit(schema: OpSchema, inputs: int, arguments: Mapping[str, Any]) -> None:
    """Check that a call fits the signature, as Python does before it looks at values."""
    name = schema.name.rpartition(".")[2]
    for key in arguments:
        _declared(schema, key, name)
    _check_input_count(schema, name, inputs)
    for arg in schema.args.values():
        if arg.required and plain(arguments.get(arg.name)) is None:
            raise ArgumentTypeError(
                f"{name}() missing 1 required keyword-only argument: '{arg.name}'. {arg.doc}"
            )


def _check_input_count(schema: OpSchema, name: str, count: int) -> None:
    low = schema.min_inputs
    high = (schema.max_inputs or 999) if schema.variadic else len(schema.inputs)
    if count < low:
        missing = schema.inputs[min(count, len(schema.inputs) - 1)].name
        raise ArgumentTypeError(
            f"{name}() missing {low - count} required positional "
            f"argument{'' if low - count == 1 else 's'}: '{missing}'"
        )
    if count > high:
        raise ArgumentTypeError(
            f"{name}() takes {high} positional argument{'' if high == 1 else 's'}, but {count} "
            "were given"
        )


def _declared(schema: OpSchema, key: str, name: str) -> Arg:
    arg = schema.args.get(key)
    if arg is None or arg.hidden or key in _NOT_ARGUMENTS:
        known = [a for a in schema.shown_args if a not in _NOT_ARGUMENTS]
        known += ["batch_size", "device", *(["rng"] if schema.random else [])]
        way = did_you_mean(key, known)
        if key == "seed" and schema.random:
            way = " In dynamic mode generators have seeds: `rng=ndd.random.RNG(seed)`."
        raise ArgumentTypeError(
            f"{name}() got an unexpected keyword argument '{key}'.{way} It takes: "
            f"{', '.join(known)}."
        )
    return arg


def converted(schema: OpSchema, arg: Arg, value: Any) -> Any:
    """Convert the constant given for an argument to what an operator reads."""
    place = f"Argument `{arg.name}` of `ndd.{schema.name}`"
    if arg.type is DataTypeArg and isinstance(value, str):
        value = BY_NAME.get(value, value)
    try:
        converted = arg.type.constant(value)
    except (TypeError, ValueError) as error:
        raise conversion_error(value, arg.per_sample, f"{place}: {error}.") from error
    check_choice(arg, converted, f"{place}: ")
    if arg.unsupported is not None and converted != arg.default:
        raise NotYetSupportedError(f"{place}: {arg.unsupported}.")
    if arg.deprecated is not None:
        warnings.warn(arg.deprecation(), DeprecationWarning, stacklevel=stack_level())
    if converted is DALIDataType.NO_TYPE and arg.default is None:
        return None
    return converted


def _check_tensor_argument(schema: OpSchema, arg: Arg) -> None:
    place = f"Argument `{arg.name}` of `ndd.{schema.name}`"
    if not arg.per_sample:
        raise ArgumentTypeError(
            f"{place} must be the same for all samples: it takes {arg.type.name}, not a Tensor or "
            "a Batch."
        )
