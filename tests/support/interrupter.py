"""Errors that a Ctrl-C, or another signal's handler, raises anywhere in the consumer's thread."""

from __future__ import annotations

import inspect
import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from headrace.graph.user_line import own_folders

_MOST_TRIES = 10_000


class Interrupter:
    """Raises KeyboardInterrupt at event `number`: `run_pending` calls a function, or it returns.

    That is where Python looks for signals. It has helped if `run_pending` called `work`.
    """

    def __init__(self, number: int, work: str) -> None:
        self.left = number
        self.work = work
        self.inside = 0
        self.helped = False

    def __call__(self, frame: FrameType, event: str, argument: object) -> Interrupter | None:
        code = frame.f_code
        if not code.co_filename.startswith(own_folders()):
            return None
        if code.co_name == "run_pending" and code.co_filename.endswith("inline.py"):
            self.inside += {"call": 1, "return": -1}.get(event, 0)
        self.helped |= code.co_name == self.work and self.inside > 0
        if self.inside and event in ("call", "return") and not is_unheard(frame):
            self.left -= 1
            if self.left == 0:
                self.inside = 0
                raise KeyboardInterrupt
        return self


def _repeat(run: Callable[[], None]) -> None:
    for _ in range(_MOST_TRIES):
        run()


def run_until_a_handler_raises(
    kind: type, method: str, run: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Call `run` until a signal's handler raised in the main thread, inside of `kind.method`.

    On a loaded machine another thread may be quicker with what the main thread would do.
    """

    def handler(*_: object) -> None:
        raise ValueError("it is time")

    original, main = getattr(kind, method), threading.main_thread()

    def interrupted(self: object, *args: Any) -> Any:
        if threading.current_thread() is main:
            signal.raise_signal(signal.SIGUSR1)
        return original(self, *args)

    before = signal.signal(signal.SIGUSR1, handler)
    try:
        with monkeypatch.context() as patch:
            patch.setattr(kind, method, interrupted)
            with pytest.raises(ValueError, match="it is time"):
                _repeat(run)
    finally:
        signal.signal(signal.SIGUSR1, before)


def is_unheard(frame: FrameType | None) -> bool:
    """Return True if Python ignores errors there, or the work is undone already."""
    assert frame is not None
    if frame.f_code.co_flags & inspect.CO_GENERATOR:
        return True
    if frame.f_code.co_name == "__init__" and hasattr(frame.f_locals["self"], "__del__"):
        return True
    while frame is not None:
        if frame.f_code.co_name in ("__del__", "_give_back"):
            return True
        frame = frame.f_back
    return False
