"""Number of iterations in progress at a time, tuned by measurement when worker processes are
used.
"""

from __future__ import annotations

from collections.abc import Sequence

_CALM, _LONGEST_CALM = 64, 1024
"""Iterations handed over without a worker in need, after which fewer are tried: more each time that
this was too few."""
_TRIED_WITHOUT = 8
"""One of so many that are not always in progress is left out then."""


class PrefetchTuner:
    """Limits the iterations in progress; all methods are called under the lock of the executor.

    Many worker processes have enough to do only if several iterations are in progress, and how
    many that takes depends on what samples cost. Each takes memory, so it is as few as keep the
    workers busy, and no more than the user asks for while the consumer keeps the workers waiting.
    """

    __slots__ = (
        "_calm",
        "_enough",
        "_is_try",
        "_spare",
        "_taken",
        "least",
        "most",
        "now",
        "varies",
    )

    def __init__(self, least: int, most: int) -> None:
        self.least = least
        self.most = max(most, least)
        self.varies = self.most > self.least
        """True if there is a choice to tune."""
        self.now = least
        """Number of iterations that may be in progress."""
        self._calm, self._enough = 0, _CALM
        """Iterations handed over since a worker was in need, and after how many fewer are tried."""
        self._is_try = False
        """True if the last step was a trial."""
        self._taken = 0
        """Iterations handed over since it was last seen how many are spare."""
        self._spare = self.most
        """The fewest that were finished after one of these."""

    def widen(self) -> None:
        """Allow one more: workers have too little to do, and the consumer waits for them."""
        self.now = min(self.now + 1, self.most)
        if self._is_try:
            self._enough = min(2 * self._enough, _LONGEST_CALM)
        self._calm, self._is_try = 0, False

    def note_taken(self, are_finished: Sequence[bool]) -> None:
        """Take note that the consumer has taken an iteration; which of the next ones are finished.

        Where each worker has a batch of its own, batches finish in any order, and many at a time
        are taken when the oldest is done. So they are spare only if as many are finished whenever
        one is taken, as often as there are iterations in progress.
        """
        self._calm += 1
        self._taken += 1
        self._spare = min(self._spare, [*are_finished, False].index(False))
        if self._taken < self.now:
            return
        spare = self._spare - self.least
        if spare <= 0 and self._calm >= self._enough:
            if self._is_try:  # the last one has left enough
                self._enough = _CALM
            spare = -(-(self.now - self.least) // _TRIED_WITHOUT)
            self._is_try = True
        self._taken, self._spare = 0, self.most
        if spare > 0:
            self.now = max(self.now - spare, self.least)
            self._calm = 0
