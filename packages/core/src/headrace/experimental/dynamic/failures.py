"""Errors of calls whose work is done later than the call, and the lines of these."""

from __future__ import annotations

from types import CodeType, FrameType

from headrace.errors import OperatorError
from headrace.tracebacks import own_folders


def line_of(code: CodeType, instruction: int) -> int:
    """Number of the line that an instruction of `code` belongs to."""
    for start, end, line in code.co_lines():
        if start <= instruction < end and line is not None:
            return line
    return code.co_firstlineno


def described(code: CodeType, instruction: int) -> str:
    """``file:line in function`` of an instruction."""
    return f"{code.co_filename}:{line_of(code, instruction)} in {code.co_name}"


def user_frame(frame: FrameType) -> FrameType:
    """The first frame from `frame` on that is not the library's own."""
    own = own_folders()
    while frame.f_code.co_filename.startswith(own) and frame.f_back is not None:
        frame = frame.f_back
    return frame


def interruption_in(error: BaseException) -> BaseException | None:
    """The Ctrl-C, or whatever else is to end the program, that `error` is or comes from."""
    seen: BaseException | None = error
    for _ in range(8):
        if seen is None or not isinstance(seen, Exception):
            return seen
        seen = None if seen.__cause__ is seen else seen.__cause__
    return None


def raised_at(error: BaseException, what: str, place: str) -> BaseException:
    """An error of the class of `error` that says `what` happened and where it was asked for."""
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
