"""Evaluation modes: times at which operators of dynamic mode do their work."""

from __future__ import annotations

import enum
import threading
from typing import Any


class ThreadState(threading.local):
    """State of dynamic mode that belongs to one thread."""

    mode: EvalMode
    """The mode in force."""

    def __init__(self) -> None:
        self.mode = EvalMode.eager
        self.modes: list[EvalMode] = []
        self.context: Any = None
        """The evaluation context in force; `None` until one is needed."""
        self.contexts: list[Any] = []
        self.defaults: dict[Any, Any] = {}
        """Default contexts of the thread, by device."""
        self.capture: Any = None
        """Recorder that notes calls and does them ahead, in a captured loop."""
        self.streams: dict[int | None, Any] = {}
        """Streams that the thread has set, by device."""


class EvalMode(enum.Enum):
    """Time at which operators do their work, and where their errors are raised.

    As a context manager, a mode is in force in the calling thread for the length of a ``with``.
    The values are the same in all modes.
    """

    deferred = 1
    """Work is done when a result is looked at, or another operator needs it; never, if neither
    happens.
    """
    eager = 2
    """At once, in the background. Calls return before the work is done; an error comes up where a
    result is looked at first, and names the line of the call."""
    sync_cpu = 3
    """Within the call, as far as the CPU has to do with it; work of a GPU goes on."""
    sync_full = 4
    """Within the call, on GPUs as well."""

    default = eager

    @staticmethod
    def current() -> EvalMode:
        """The mode that is in force in the calling thread."""
        return THREAD.mode

    def __enter__(self) -> None:
        THREAD.modes.append(THREAD.mode)
        THREAD.mode = self

    def __exit__(self, *exc_info: object) -> None:
        THREAD.mode = THREAD.modes.pop()


THREAD = ThreadState()
