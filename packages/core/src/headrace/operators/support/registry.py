"""The list of all operators by name.

Those of the library are listed in `headrace.operators.support.manifest`, and their modules imported
when they are first asked for. All others are here once their declaration has run.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from headrace._forking import no_fork
from headrace.errors import ArgumentValueError, UnknownNameError
from headrace.operators.support.manifest import OPERATORS

if TYPE_CHECKING:
    from headrace.operators.support.listed import Listed
    from headrace.operators.support.schema import OpSchema

_LIBRARY = "headrace.operators"
_schemas: dict[str, OpSchema] = {}
_on_replacement: list[Callable[[OpSchema], None]] = []
_not_imported = {name: f"{_LIBRARY}.{entry.code}" for name, entry in OPERATORS.items()}
"""Modules of the library's operators that are not imported yet, by the operators' names."""


def register(schema: OpSchema) -> None:
    """Add an operator, or replace one by what the same code declares when it is run again."""
    # A class that is made by `exec` has no module.
    if not (schema.cls.__module__ or "").startswith(f"{_LIBRARY}."):
        _import(schema.name)
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


def _import(name: str) -> None:
    """Import the module that declares operator `name`, if it is one of the library's.

    A module that another thread is importing is waited for: what it declares works once it is
    complete.
    """
    module = _not_imported.get(name)
    if module is not None:
        with no_fork:
            importlib.import_module(module)
        _not_imported.pop(name, None)


def on_replacement(forget: Callable[[OpSchema], None]) -> None:
    """Have `forget` called with each declaration that is replaced by another."""
    _on_replacement.append(forget)


def find(name: str) -> OpSchema:
    """The declaration of operator `name`."""
    if name in _not_imported:
        _import(name)
    try:
        return _schemas[name]
    except KeyError:
        raise UnknownNameError(f'There is no operator named "{name}".') from None


def listed() -> Iterator[OpSchema | Listed]:
    """Every operator, by name: its declaration, or what the manifest says of it until then."""
    for name in sorted({*_schemas, *OPERATORS}):
        yield _schemas.get(name) or OPERATORS[name]


def all_schemas() -> Iterator[OpSchema]:
    """Every declaration, by name. Imports all operators of the library."""
    for name in list(_not_imported):
        _import(name)
    for name in sorted(_schemas):
        yield _schemas[name]
