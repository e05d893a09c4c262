"""Checks of what declarations say of constants: few values, and arguments that go together."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from headrace.errors import ArgumentChoiceError, MissingArgumentError, MisusedArgumentError
from headrace.operators.support.argument_types import DataTypeArg

if TYPE_CHECKING:
    from headrace.operators.support.schema import Arg, OpSchema


class Rule(NamedTuple):
    """Arguments and optional inputs that go together, or do not.

    Each of `names` may be several, with spaces between: any of them counts.
    """

    kind: Literal["one", "at most one", "at least one", "together", "needs"]
    names: tuple[str, ...]
    """With ``"needs"``, the first needs each of the others."""
    said: str = ""
    """Said in front of what follows from the other fields."""

    def text(self) -> str:
        """The rule for readers."""
        words = [" or ".join(f"`{n}`" for n in name.split()) for name in self.names]
        listed = f"{', '.join(words[:-1])} and {words[-1]}"
        if self.kind == "together":
            return f"{listed} are given together."
        if self.kind == "needs":
            return f"{words[0]} needs {' and '.join(words[1:])}."
        start = "Exactly one" if self.kind == "one" else self.kind.capitalize()
        return f"{start} of {listed} is given."

    def check(self, is_given: Callable[[str], bool]) -> None:
        """Raise `MisusedArgumentError` where what is given breaks the rule."""
        given = [[n for n in name.split() if is_given(n)] for name in self.names]
        count = sum(map(bool, given))
        broken = {
            "one": count != 1,
            "at most one": count > 1,
            "at least one": count == 0,
            "together": 0 < count < len(given),
            "needs": bool(given[0]) and count < len(given),
        }
        if broken[self.kind]:
            listed = " and ".join(f"`{n}`" for names in given for n in names)
            raise MisusedArgumentError(
                f"{self.said} {self.text()} Got {listed or 'none of them'}.".lstrip()
            )


def at_most_one(*names: str, said: str = "") -> Rule:
    """Arguments that exclude each other."""
    return Rule("at most one", names, said)


def at_least_one(*names: str, said: str = "") -> Rule:
    """Arguments of which some have to be given."""
    return Rule("at least one", names, said)


def exactly_one(*names: str, said: str = "") -> Rule:
    """Arguments of which one has to be given."""
    return Rule("one", names, said)


def together(*names: str, said: str = "") -> Rule:
    """Arguments that are given all or none."""
    return Rule("together", names, said)


def needs(*names: str, said: str = "") -> Rule:
    """An argument that needs others."""
    return Rule("needs", names, said)


def check_choice(arg: Arg, value: Any, place: str = "") -> None:
    """Raise `ArgumentChoiceError`, which begins with `place`, if `arg` may not have `value`."""
    if arg.choices and value is not None and value not in arg.choices:
        allowed = ", ".join(map(_shown, arg.choices))
        hint = " Use `fn.cast` for other types." if arg.type is DataTypeArg else ""
        said = arg.said and arg.said.format(getattr(value, "name", value)) + ". "
        raise ArgumentChoiceError(
            f"{place}{said}`{arg.name}` is {_shown(value)}, which is not one of {allowed}.{hint}"
        )


def _shown(value: Any) -> str:
    return value.name if isinstance(value, Enum) else repr(value)


def check_required(
    schema: OpSchema, args: Mapping[str, Any], tensors: Mapping[str, Any], place: str = ""
) -> None:
    """Raise `MissingArgumentError`, which begins with `place`, if an argument has to be given."""
    for arg in schema.args.values():
        if arg.required and args.get(arg.name) is None and arg.name not in tensors:
            raise MissingArgumentError(
                f"{place}Not all required arguments were specified: `{arg.name}` is missing. It "
                f"is: {arg.doc}"
            )


def check_declared(
    schema: OpSchema,
    args: Mapping[str, Any],
    tensors: Mapping[str, Any],
    inputs: int,
    *,
    late: bool = True,
) -> None:
    """Check constants, names of arguments that are tensors, and a number of inputs.

    Without `late` before there is any data.
    """
    check_required(schema, args, tensors)
    for arg in schema.args.values():
        if late or not arg.late:
            check_choice(arg, args.get(arg.name))
    if schema.rules:
        positions = {declared.name: k for k, declared in enumerate(schema.inputs)}

        def is_given(name: str) -> bool:
            if name in positions:
                return positions[name] < inputs
            return name in tensors or args.get(name) is not None

        for rule in schema.rules:
            rule.check(is_given)


AXES_OR_NAMES = at_most_one("axes", "axis_names")
