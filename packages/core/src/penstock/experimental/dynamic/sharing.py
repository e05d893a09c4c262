"""Whether to share the samples of a batch among threads: found out by doing both now and then.

Where much of the work is the interpreter's, or other threads keep the processors busy, a second
thread costs more than it brings; where pixels are the work it halves the time. No figure that is
known beforehand tells which.
"""

from __future__ import annotations

_FIRST_RUNS = 6
_TRY_EVERY = 48
_UP = 8
_WORTH_IT = 0.85
"""Several threads have to take this much of one thread's time at most, as they take more in sum."""


class Sharing:
    """Chooses between one thread and several, for one stage of one chain.

    Threads may use it at the same time; a note that gets lost does no harm.
    """

    __slots__ = ("_runs", "_seconds")

    def __init__(self) -> None:
        self._runs = 0
        self._seconds = [float("inf"), float("inf")]
        """What a run takes on one thread and on several."""

    def choose(self) -> bool:
        """Whether to share this time."""
        self._runs += 1
        if self._runs <= _FIRST_RUNS:
            return self._runs % 2 == 0
        shared_is_better = self._seconds[1] < _WORTH_IT * self._seconds[0]
        return not shared_is_better if self._runs % _TRY_EVERY == 0 else shared_is_better

    def note(self, shared: bool, seconds: float) -> None:
        """Take the time of a run into account: down at once, up slowly."""
        known = self._seconds[shared]
        self._seconds[shared] = seconds if seconds < known else known + (seconds - known) / _UP
