"""The list of all operators by name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from penstock.errors import UnknownNameError

if TYPE_CHECKING:
    from penstock.operators.schema import OpSchema

_schemas: dict[str, OpSchema] = {}


def register(schema: OpSchema) -> None:
    """Add an operator.

    Raises
    ------
    ValueError
        If the name is taken by another class.
    """
    known = _schemas.get(schema.name)
    if known is not None and known.cls.__qualname__ != schema.cls.__qualname__:
        raise ValueError(
            f"operator `{schema.name}` is already declared by {known.cls.__module__}."
            f"{known.cls.__qualname__}"
        )
    _schemas[schema.name] = schema


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
