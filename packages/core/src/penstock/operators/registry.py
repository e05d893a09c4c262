"""The list of all operators by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from penstock.errors import ArgumentValueError, UnknownNameError

if TYPE_CHECKING:
    from penstock.operators.schema import OpSchema

_schemas: dict[str, OpSchema] = {}
_on_replacement: list[Callable[[OpSchema], None]] = []


def register(schema: OpSchema) -> None:
    """Add an operator, or replace one by what the same code declares when it is run again.

    Raises
    ------
    ArgumentValueError
        If the name is taken by another class, or by one of the same name in another module.
    """
    known = _schemas.get(schema.name)
    if known is not None and _place(known.cls) != _place(schema.cls):
        raise ArgumentValueError(
            f"There is an operator `{schema.name}` already, declared by {known.cls.__module__}."
            f"{known.cls.__qualname__}; give the new one another name."
        )
    _schemas[schema.name] = schema
    if known is not None:
        for forget in _on_replacement:
            forget(known)


def _place(cls: type) -> tuple[str, str]:
    return cls.__module__, cls.__qualname__


def on_replacement(forget: Callable[[OpSchema], None]) -> None:
    """Have `forget` called with each declaration that is replaced by another."""
    _on_replacement.append(forget)


def find(name: str) -> OpSchema:
    """The declaration of operator `name`."""
    try:
        return _schemas[name]
    except KeyError:
        raise UnknownNameError(f'There is no operator named "{name}".') from None


def all_schemas() -> Iterator[OpSchema]:
    """Every declaration, by name."""
    for name in sorted(_schemas):
        yield _schemas[name]
