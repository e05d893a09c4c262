"""Errors that signals raise in the consumer's thread while it does work of the engine."""

from __future__ import annotations

import signal
import traceback
from typing import Any

_MOST_CAUSES = 8


def interruption_of(error: BaseException) -> BaseException | None:
    """Return what a signal has raised, if an error came of that."""
    found: BaseException | None = error
    for _ in range(_MOST_CAUSES):  # causes may go round: errors are raised from themselves
        if found is None or not isinstance(found, Exception) or _is_of_handler(found):
            return found
        found = found.__cause__
    return None


def _is_of_handler(error: BaseException) -> bool:
    """Return True if the handler of a signal has raised an error."""
    handlers = {_code_of(signal.getsignal(number)) for number in signal.valid_signals()}
    return any(frame.f_code in handlers for frame, _ in traceback.walk_tb(error.__traceback__))


def _code_of(handler: Any) -> Any:
    """The code of a handler written in Python."""
    if not callable(handler):  # the system deals with that signal
        return None
    handler = getattr(handler, "func", handler)  # functools.partial
    handler = getattr(handler, "__func__", handler)
    code = getattr(handler, "__code__", None)
    return getattr(type(handler).__call__, "__code__", None) if code is None else code
