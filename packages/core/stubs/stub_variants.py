"""In how many ways an operator is called, where its arguments decide what it returns.

Type checkers choose between overloads by the literals and types of arguments. Which arguments
decide is found by asking the declaration how many outputs there are with and without each.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from inspect import Parameter, Signature
from typing import TYPE_CHECKING

from headrace.operators.support.argument_types import (
    ArgType,
    BoolArg,
    IntListArg,
    PathArg,
    StringListArg,
)
from headrace.operators.support.composite import Composite
from headrace.operators.support.signature import SourceText

if TYPE_CHECKING:
    from headrace.operators.support.schema import Arg, OpSchema


@dataclass
class Variant:
    """One way to call an operator."""

    counts: tuple[int | None, ...]
    """How many outputs there may be then; `None` for a list of a number that is not known. Empty
    where only values tell.
    """
    types: dict[str, str] = field(default_factory=dict)
    """What the arguments that decide are."""
    needed: tuple[str, ...] = ()
    """What has to be given."""
    by_name: tuple[str, ...] = ()
    """What is given by name, though it could be by position."""
    others_unchecked: bool = False
    """Keep only the inputs and what decides. A checker that finds no way to call an operator shows
    all of them, and where a flag is not known is the rarest one.
    """

    def applied(self, signature: Signature) -> Signature:
        """The signature, as far as it is about this way."""
        parameters = []
        for parameter in signature.parameters.values():
            name = parameter.name
            if name in self.types:
                parameter = parameter.replace(annotation=SourceText(self.types[name]))
            if name in self.needed:
                parameter = parameter.replace(default=Parameter.empty)
            if name in self.by_name:
                parameter = parameter.replace(kind=Parameter.KEYWORD_ONLY)
            kept = name in self.needed or parameter.kind is not Parameter.KEYWORD_ONLY
            if self.others_unchecked and not kept:
                continue
            parameters.append(parameter)
        if self.others_unchecked:
            options = SourceText("Any")
            parameters.append(Parameter("options", Parameter.VAR_KEYWORD, annotation=options))
        return signature.replace(parameters=parameters)


_SINGLE = {IntListArg: "int", StringListArg: "str"}
"""What is given in the place of a list with a single element."""


_STAND_INS: dict[ArgType, object] = {PathArg: "x", IntListArg: (0,)}
"""Values of arguments that are no flags, to see whether they decide by being there."""


def variants(schema: OpSchema) -> list[Variant]:
    """All ways to call an operator, the usual one first and the one that covers all others last."""
    count = schema.num_outputs
    if not callable(count):
        return [Variant((count,))]
    told = schema.given_readers is None and schema.output_names is None
    if schema.optional_adds_output or not told:
        return [Variant((None,))]
    if issubclass(schema.cls, Composite):  # one output more for each optional input
        optional = tuple([each.name for each in schema.inputs if each.optional])
        return [Variant((None,), needed=optional), Variant((1, None))]
    defaults = {a.name: (None if a.required else a.default) for a in schema.args.values()}
    lists = {
        a.name: _SINGLE[a.type] if a.required else "{0} | tuple[{0}]".format(_SINGLE[a.type])
        for a in schema.args.values()
        if a.type in _SINGLE and (a.required or _counts(a, count, defaults))
    }
    if lists:  # of one output for each element
        return [Variant((1,), lists), Variant((1, None))]
    if any(
        count({**defaults, a.name: _STAND_INS[a.type]}) != count(defaults)
        for a in schema.args.values()
        if a.type in _STAND_INS
    ):
        return [Variant(())]
    flags = [a for a in schema.args.values() if a.type is BoolArg and _decides(a, count, defaults)]
    if flags:
        flags.sort(key=lambda arg: not arg.default)  # what is there without being asked for
        return _of_flags(flags, count, defaults)
    if schema.calls_user:
        return _OF_FUNCTIONS
    if schema.name != "external_source":
        raise NotImplementedError(f"what decides how many outputs `fn.{schema.name}` has?")
    return _OF_SOURCES


def _counts(arg: Arg, count: Callable[[dict[str, object]], int], args: dict[str, object]) -> bool:
    """Whether there is an output for each element of an argument, which is a list."""
    return bool(arg.default) and count({**args, arg.name: arg.default * 9}) == 9


def _decides(arg: Arg, count: Callable[[dict[str, object]], int], args: dict[str, object]) -> bool:
    return count({**args, arg.name: True}) != count({**args, arg.name: False})


def _of_flags(
    flags: list[Arg], count: Callable[[dict[str, object]], int], defaults: dict[str, object]
) -> list[Variant]:
    """Where there is one output without all of the flags: a list with any of them."""
    none = {**defaults, **{a.name: False for a in flags}}
    if count(none) > 2:  # no argument makes it one
        return [Variant((None,))]
    if count(none) != 1:  # an argument that is no flag decides as well
        listed = [Variant((None,), {a.name: "Literal[True]"}, (a.name,)) for a in flags]
        return [*listed, Variant((1, None))]
    without = Variant(
        (1,),
        {a.name: "Literal[False]" + ("" if a.default else " | None") for a in flags},
        tuple([a.name for a in flags if a.default]),
    )
    found = [without]
    for flag in flags:
        with_flag = Variant(
            (count({**none, flag.name: True}) if len(flags) == 1 else None,),
            {flag.name: "Literal[True]" + (" | None" if flag.default else "")},
            () if flag.default else (flag.name,),
        )
        found.append(with_flag)
    either = tuple(c for variant in found[:2] for c in variant.counts)
    if any(a.default for a in flags):
        found = [*found[1:], without]
    if len(flags) > 1:
        return [*found, Variant(either)]
    (flag,) = flags
    return [*found, Variant(either, {flag.name: "bool | None"}, (flag.name,), (), True)]


_OF_SOURCES = [
    # A source that is made for it may say itself what it has.
    Variant((), {"source": "SourceWithTraits", "num_outputs": "None"}, ("source",)),
    Variant((1,), {"num_outputs": "None"}),
    Variant((None,), {"num_outputs": "int"}, ("num_outputs",), ("num_outputs",)),
    Variant((None,), {"num_outputs": "int"}, ("source", "num_outputs")),
    Variant((1, None)),
]
"""The ways to call `fn.external_source`."""

_OF_FUNCTIONS = [
    Variant((1,), {"num_outputs": "Literal[1] | None"}),
    Variant((0,), {"num_outputs": "Literal[0]"}, ("num_outputs",), ("num_outputs",)),
    Variant((), {"num_outputs": "int"}, ("num_outputs",), ("num_outputs",)),
]
"""The ways to call operators that call functions of the user's."""
