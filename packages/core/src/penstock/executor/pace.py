"""Who waits for whom: the consumer of batches, or the thread that makes them."""

from __future__ import annotations

import time

_SHARE = 0.25
"""Of the latest time in a mean."""
_TIMES = 2.0
"""How much longer than the work on an iteration a consumer may take, and still waits: most of what
it does needs the interpreter, too.
"""


class Pace:
    """Times between the calls of a consumer, and of the work on an iteration in between.

    A consumer that comes back sooner than an iteration can be made will wait for it, and lets go of
    the interpreter then. To wake the thread that makes it before that only lets the two fight over
    the interpreter: each call of a framework that lets go of it for a moment wakes the other
    thread, for nothing, and is slow. A consumer that has work of its own is to find its batch
    ready.
    """

    __slots__ = ("_between", "_given", "_work")

    def __init__(self) -> None:
        self._given = time.perf_counter()
        self._between = float("inf")
        self._work = 0.0

    @property
    def is_consumer_faster(self) -> bool:
        """Whether the consumer will come before the next iteration is made."""
        return self._between < _TIMES * self._work

    def asked(self) -> float:
        """Note that the consumer asks for a batch; the time."""
        now = time.perf_counter()
        between = now - self._given
        known = self._between
        self._between = between if known == float("inf") else known + _SHARE * (between - known)
        return now

    def given(self) -> float:
        """Note that the consumer gets a batch; the time."""
        self._given = time.perf_counter()
        return self._given

    def worked(self, seconds: float) -> None:
        """Note how long the work on an iteration took."""
        self._work += _SHARE * (seconds - self._work)
