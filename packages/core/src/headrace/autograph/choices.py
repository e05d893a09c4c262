"""The branches of an expression: conditional expressions, `and`, `or`.

A choice begins with `decide` and ends with `either`, `and_` or `or_`; choices within its operands
begin and end in between. Open choices of a thread are a stack.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

from headrace.autograph import tracing
from headrace.autograph.joining import Missing, join
from headrace.graph.user_line import user_line


class _Choice:
    """One open choice."""

    __slots__ = ("_guard", "branches", "operand", "truth", "value")

    def __init__(self, value: Any, branches: tracing.Branches | None) -> None:
        self.value = value
        self.branches = branches
        self.operand = value
        """`value` as an operand of `and` or `or`, when it has been checked."""
        self.truth = branches is None and bool(value)
        self._guard: contextlib.AbstractContextManager[Any, Any] | None = None

    def needs(self, holds: bool) -> bool:
        """Return True if the operand for this truth value is needed, and enter its branch then."""
        if self.branches is None:
            return self.truth is holds
        self.leave()
        self._guard = self.branches.guarded(self.operand, holds=holds)
        self._guard.__enter__()
        return True

    def leave(self) -> None:
        """Leave the branch that is open."""
        guard, self._guard = self._guard, None
        if guard is not None:
            guard.__exit__(None, None, None)


class _Open(threading.local):
    def __init__(self) -> None:
        self.choices: list[_Choice] = []


_open = _Open()


def decide(value: Any) -> None:
    """Begin a choice by `value`."""
    branches = tracing.current()
    if branches is not None and not branches.is_data(value):
        branches = None
    _open.choices.append(_Choice(value, branches))


def decide_logical(value: Any, operation: str) -> None:
    """Begin ``and`` or ``or`` with its left operand."""
    decide(value)
    choice = _open.choices[-1]
    if choice.branches is not None:
        choice.operand = choice.branches.operand(value, operation, "left")


def if_true() -> bool:
    """Return True if the operand for a true condition must be evaluated."""
    return _open.choices[-1].needs(True)


def if_false() -> bool:
    """Return True if the operand for a false condition must be evaluated."""
    return _open.choices[-1].needs(False)


def either(_: None, value: Any, other: Any) -> Any:
    """End a conditional expression: `value` where the choice is true, else `other`."""
    choice = _open.choices.pop()
    if choice.branches is None:
        return value if choice.truth else other
    choice.leave()
    line = user_line()
    found = join(choice.branches, choice.value, value, other, "the expression", line)
    if isinstance(found, Missing):
        raise found.error(found.message)
    return found


def and_(_: None, right: Any) -> Any:
    """End ``left and right``."""
    return _logical("and", right)


def or_(_: None, right: Any) -> Any:
    """End ``left or right``."""
    return _logical("or", right)


def _logical(operation: str, right: Any) -> Any:
    choice = _open.choices.pop()
    if choice.branches is None:
        return right if choice.truth is (operation == "and") else choice.value
    try:
        right = choice.branches.operand(right, operation, "right")
    finally:
        choice.leave()
    left = choice.operand
    pair = (right, left) if operation == "and" else (left, right)
    return choice.branches.merge(left, *pair, f"the result of `{operation}`")


@contextlib.contextmanager
def unfinished() -> Iterator[None]:
    """Leave the choices that an error in the block has left open."""
    count = len(_open.choices)
    try:
        yield
    except BaseException:
        while len(_open.choices) > count:
            _open.choices.pop().leave()
        raise
