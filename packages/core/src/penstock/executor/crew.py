"""How many threads carry samples through a stage at once: found out by trying.

Where a sample takes some hundred microseconds and much of that is the interpreter's, a second
thread brings nothing: the two hand the interpreter's lock to and fro, and each time costs more than
the work that could be done meanwhile. Where pixels are the work it halves the time. No figure that
is known beforehand tells which, so such a stage is done by one thread for a while, and by what
turned out to be better from then on. What is computed does not depend on it.
"""

from __future__ import annotations

_SHORT_SECONDS = 3e-4
"""Samples that keep a processor longer are always shared among all threads. What they take on the
clock tells nothing: where many threads want the interpreter, short work takes long."""
_CHUNKS_TRIED = 24
_OUTLIERS = 2
"""Slowest chunks of a trial that do not count: a kernel was compiled, a thread was put aside."""
_FIRST_REST = 1000
_LONGEST_REST = 16000
"""Chunks between two trials."""
_WORTH_IT = 1.15
"""How much more all threads have to do than one, as they take more from everybody else."""


class Crew:
    """The threads of one stage; all methods are called under the lock of the executor.

    Parameters
    ----------
    threads
        How many there are.
    tries
        Whether it is found out by trying how many are best; else it is always all of them.
    """

    __slots__ = ("_notes", "_other", "_rest", "_together", "_tries", "_wait", "busy", "limit")

    def __init__(self, threads: int, *, tries: bool = True) -> None:
        self.limit = threads
        """How many may be at work."""
        self.busy = 0
        """How many are."""
        self._together = threads
        self._tries = tries and threads > 1
        self._notes: list[float] = []
        """Seconds a sample in the chunks of the trial under way."""
        self._other: float | None = None
        """Seconds a sample with the limit that was tried first, while the other one is tried."""
        self._wait = 0
        self._rest = _FIRST_REST

    def is_full(self) -> bool:
        """Whether no further thread is to begin a chunk."""
        return self.busy >= self.limit

    def enter(self) -> None:
        """Begin a chunk."""
        self.busy += 1

    def leave(self, beside: int, seconds: float, stage_seconds: float) -> None:
        """End a chunk.

        Parameters
        ----------
        beside
            How many threads were at work when it began.
        seconds
            What it took, for each of its samples.
        stage_seconds
            About how long a sample of the stage keeps a processor at present.
        """
        self.busy -= 1
        if not self._tries:
            return
        if stage_seconds > _SHORT_SECONDS:
            self._start_over()
            return
        if self._wait:
            self._wait -= 1
            return
        alone = self.limit == 1
        if self.busy if alone else beside < 2:
            return
        self._notes.append(seconds / beside)
        if len(self._notes) < _CHUNKS_TRIED:
            return
        kept = sorted(self._notes)[:-_OUTLIERS]
        self._notes.clear()
        here = sum(kept) / len(kept)
        if self._other is None:
            self._other = here
            self.limit = self._together if alone else 1
            return
        single, together = (here, self._other) if alone else (self._other, here)
        self.limit = self._together if single > _WORTH_IT * together else 1
        self._other = None
        self._wait = self._rest
        self._rest = min(2 * self._rest, _LONGEST_REST)

    def _start_over(self) -> None:
        self.limit = self._together
        self._notes.clear()
        self._other = None
        self._wait = 0
        self._rest = _FIRST_REST
