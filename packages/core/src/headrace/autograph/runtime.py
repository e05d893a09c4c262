"""Runtime functions called by rewritten code, which knows this module as ``_headrace``."""

from __future__ import annotations

import sys
from typing import Any

from headrace.autograph import tracing
from headrace.autograph.blocks import DataBlocks, PlainBlocks
from headrace.autograph.changes import Changed
from headrace.autograph.choices import (
    and_,
    decide,
    decide_logical,
    either,
    if_false,
    if_true,
    or_,
    unfinished,
)
from headrace.autograph.conversion import call
from headrace.autograph.joining import Missing
from headrace.errors import ArgumentTypeError
from headrace.graph.user_line import user_line

__all__ = [
    "and_",
    "call",
    "changed",
    "decide",
    "decide_logical",
    "either",
    "if_",
    "if_false",
    "if_true",
    "iterable",
    "not_",
    "or_",
    "plain",
    "read",
    "unfinished",
]

_BODY = PlainBlocks(runs_body=True)
_ORELSE = PlainBlocks(runs_body=False)


def if_(condition: Any, names: tuple[str, ...]) -> PlainBlocks | DataBlocks:
    """The branches of an ``if condition:`` that may assign the variables `names`."""
    branches = tracing.current()
    if branches is None or not branches.is_data(condition):
        return _BODY if condition else _ORELSE
    return DataBlocks(branches, condition, names, sys._getframe(1))


def changed(base: Any, text: str, *blocks: PlainBlocks | DataBlocks) -> Any:
    """An object whose item or attribute is assigned or deleted in branches of these blocks."""
    on_data = [block for block in blocks if isinstance(block, DataBlocks)]
    return Changed(base, text, on_data) if on_data else base


def not_(value: Any) -> Any:
    """Return ``not value``."""
    branches = tracing.current()
    if branches is None or not branches.is_data(value):
        return not value
    return branches.negated(value)


def read(value: Any) -> Any:
    """The value of a variable, which may have none after an `if` on data."""
    if isinstance(value, Missing):
        raise value.error(f"{value.message} It is read at {user_line()}.")
    return value


def plain(condition: Any, what: str) -> Any:
    """A condition that must not be data."""
    branches = tracing.current()
    if branches is not None and branches.is_data(condition):
        raise ArgumentTypeError(
            f'"DataNode" was used in conditional context at {user_line()}: the condition of {what} '
            "must be known while the pipeline is being defined, and data is not. `if`, conditional "
            "expressions, `and`, `or` and `not` take data."
        )
    return condition


def iterable(value: Any) -> Any:
    """Return the iterable of a loop; it must not be data."""
    branches = tracing.current()
    if branches is not None and branches.is_data(value):
        raise ArgumentTypeError(
            f"The loop at {user_line()} runs over data. `DataNode`s are not iterable: how many "
            "elements a sample has is not known while the pipeline is being defined. Operators "
            "work on all elements of a sample; `data[0]` is one of them."
        )
    return value
