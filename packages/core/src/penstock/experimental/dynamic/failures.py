"""Errors of calls whose work is done later than the call."""

from __future__ import annotations

from dataclasses import replace
from types import CodeType
from typing import TYPE_CHECKING

from penstock.errors import OperatorError, located
from penstock.experimental.dynamic.modes import EvalMode

if TYPE_CHECKING:
    from penstock.experimental.dynamic.invocations import Invocation


def line_of(code: CodeType, instruction: int) -> int:
    """Number of the line that an instruction of `code` belongs to."""
    for start, end, line in code.co_lines():
        if start <= instruction < end and line is not None:
            return line
    return code.co_firstlineno


def described(code: CodeType, instruction: int) -> str:
    """``file:line in function`` of an instruction."""
    return f"{code.co_filename}:{line_of(code, instruction)} in {code.co_name}"


def placed(error: BaseException, invocation: Invocation) -> BaseException:
    """`error` of an operator, told of the user's line that called it.

    Programs are shared by all calls of one kind, so that what comes out of them cannot know.
    """
    if not isinstance(error, OperatorError):
        return error
    where = replace(
        error.where,
        operator=invocation.form.operation.shown,
        user_stack=invocation.user_stack,
    )
    reason, place, _ = str(error).rpartition(f"\n  {error.where.describe()}")
    cause = None if error.__cause__ is error else error.__cause__
    found: OperatorError
    if place:
        found = type(error)(f"{reason}\n  {where.describe()}")
        found.where = where
    else:
        found = located(error if cause is None else cause, where)
    found.__cause__ = cause
    return found.with_traceback(error.__traceback__)


def interruption_in(error: BaseException) -> BaseException | None:
    """The Ctrl-C, or whatever else is to end the program, that `error` is or comes from."""
    seen: BaseException | None = error
    for _ in range(8):
        if seen is None or not isinstance(seen, Exception):
            return seen
        seen = None if seen.__cause__ is seen else seen.__cause__
    return None


def surfaced(invocation: Invocation) -> BaseException:
    """The error of a call, to be raised where a result is looked at, from `invocation.error`.

    It has the class of what went wrong. That error is its cause.
    """
    error = invocation.error
    assert error is not None
    if invocation.mode is EvalMode.deferred:
        when = "An error happened during deferred evaluation"
    else:
        when = "An error happened during asynchronous execution"
    what = f"{when} of `{invocation.form.operation.shown}`"
    return raised_at(error, what, described(invocation.code, invocation.instruction))


def raised_at(error: BaseException, what: str, place: str) -> BaseException:
    """An error of the class of `error` that says `what` happened and where it was asked for.

    Parameters
    ----------
    error
        What went wrong.
    what
        The beginning of the message.
    place
        The user's line that asked for it.
    """
    text = str(error)
    if place not in text:
        what += f", called at {place}"
    try:
        found: BaseException = type(error)(f"{what}:\n{text}")
    except Exception:  # constructors of their own
        found = RuntimeError(f"{what}:\n{type(error).__name__}: {text}")
    if isinstance(found, OperatorError) and isinstance(error, OperatorError):
        found.where = error.where
    return found
