"""Checks of what an operator is declared by: a program's own is wrong more often than a call."""

from __future__ import annotations

import dataclasses
import keyword
from collections.abc import Iterable, Mapping
from typing import Any

from headrace.errors import ArgumentTypeError, ArgumentValueError, did_you_mean
from headrace.operators.support.argument_types import ArgType
from headrace.operators.support.schema import Arg, Input, OpSchema

_DEVICES = frozenset(("cpu", "gpu", "mixed"))
_TRAITS = frozenset(f.name for f in dataclasses.fields(OpSchema) if f.init) - {
    *("name", "cls", "doc", "inputs", "args")
}


def check_name(name: Any) -> None:
    """Check that ``fn.<name>`` can be written."""
    if not isinstance(name, str):
        raise ArgumentTypeError(
            f"The name of an operator is a text, got {name!r}: `@operator("
            f'"{getattr(name, "__name__", "name")}", inputs=Input())`.'
        )
    if not all(part.isidentifier() and not keyword.iskeyword(part) for part in name.split(".")):
        raise ArgumentValueError(
            f"{name!r} is no name of an operator: `fn.{name}` cannot be written. It is an "
            'identifier of Python, as "solarize", or several with dots between them.'
        )


def check_traits(name: str, traits: Mapping[str, Any]) -> None:
    """Check that all other arguments of a declaration are known."""
    for trait in traits:
        if trait not in _TRAITS:
            known = ["inputs", "args", "infer", "old_names", *sorted(_TRAITS)]
            raise ArgumentTypeError(
                f"The declaration of operator `{name}` has no argument `{trait}`."
                f"{did_you_mean(trait, known)} It takes: {', '.join(known)}."
            )
    devices = traits.get("devices", ("cpu",))
    if isinstance(devices, str) or not _DEVICES.issuperset(devices):
        raise ArgumentValueError(
            f"`devices` of operator `{name}` is {devices!r}; it is a tuple of some of "
            '"cpu", "gpu" and "mixed".'
        )


def check_inputs(name: str, inputs: Any) -> tuple[Input, ...]:
    """Return the inputs as a tuple, if that is what they are."""
    found = (inputs,) if isinstance(inputs, (Input, str)) else tuple(inputs)
    for each in found:
        if not isinstance(each, Input):
            raise ArgumentTypeError(
                f"`inputs` of operator `{name}` has {each!r} of type {type(each).__name__}; it is "
                'an `Input`, as `Input("image", layouts=("HWC",))`, or a list of such.'
            )
    return found


def check_args(name: str, args: Iterable[Any]) -> tuple[Arg, ...]:
    """Return the arguments as a tuple, if that is what they are."""
    found = (args,) if isinstance(args, Arg) else tuple(args)
    for each in found:
        if not isinstance(each, Arg):
            raise ArgumentTypeError(
                f"`args` of operator `{name}` has {each!r} of type {type(each).__name__}; it is a "
                'list of `Arg`, as `Arg("threshold", FloatArg, 128.0, "What it is.")`.'
            )
        if not isinstance(each.type, ArgType):
            raise ArgumentTypeError(
                f"The type of argument `{each.name}` of operator `{name}` is {each.type!r}; it is "
                "one of `headrace.operators`: `IntArg`, `FloatArg`, `BoolArg`, `StringArg`, ..."
            )
    return found
