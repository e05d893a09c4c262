"""The end of the program, while TensorFlow prefetches from pipelines in threads of its own.

These threads call Python. Those that do while the interpreter is being torn down never return, and
the program hangs where TensorFlow waits for them, as it does with ``Dataset.from_generator``. So
datasets come to their end before.
"""

from __future__ import annotations

import atexit
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

WAIT_SECONDS = 5.0
"""Seconds that the end of the program waits for calls that are under way."""
_BETWEEN_CALLS_SECONDS = 0.02
"""Seconds that TensorFlow may take from the end of a call to the next one."""

_steppers: weakref.WeakSet[Any] = weakref.WeakSet()
_changed = threading.Condition()
"""Guards `_calls`."""
_calls = 0
_begun = False


def add(stepper: Any) -> None:
    """Have `stepper`, which has a method `close`, closed when the program ends."""
    _steppers.add(stepper)


@contextmanager
def call() -> Iterator[Callable[[], bool]]:
    """A call by TensorFlow: the program does not end before it has returned.

    Gives a function that says whether the end has begun.
    """
    global _calls
    with _changed:
        _calls += 1
    try:
        yield lambda: _begun
    finally:
        with _changed:
            _calls -= 1
            _changed.notify_all()


@atexit.register
def _end() -> None:
    global _begun
    _begun = True
    steppers = [stepper for stepper in _steppers if stepper.is_in_use()]
    for stepper in steppers:
        stepper.close()
    with _changed:
        _changed.wait_for(lambda: not _calls, WAIT_SECONDS)
    if steppers:  # a thread may be about to make one more call, which returns at once
        time.sleep(_BETWEEN_CALLS_SECONDS)
        with _changed:
            _changed.wait_for(lambda: not _calls, WAIT_SECONDS)
