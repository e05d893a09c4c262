"""How many threads carry samples through a stage at once: found out by measuring.

Threads share one interpreter. Where much of a sample is its work, further threads bring
nothing: they hand its lock to and fro, and each time costs more than the work that could be done
meanwhile. Where pixels are the work, each thread counts. No figure that is known beforehand tells
how many are best, so a stage is run with all threads, with half of them, and so on, for a while
each and as long as fewer do not do clearly less, and with the best number from then on. What is
computed does not depend on it.

Worker processes have interpreters of their own: where they carry the samples, nothing is tried.
"""

from __future__ import annotations

_CHUNKS_TRIED = 24
_OUTLIERS = 2
"""Slowest chunks of a trial that do not count: a kernel was compiled, a thread was put aside."""
_FIRST_REST = 250
_LONGEST_REST = 16000
"""Chunks between two trials."""
_WORTH_IT = 1.1
"""How much more a number of threads has to do than a smaller one, as it takes more from everybody
else."""


class Concurrency:
    """Limits the threads of one stage; all methods are called under the lock of the executor.

    Parameters
    ----------
    threads
        How many there are.
    tries
        Whether it is measured how many are best; else it is always all of them.
    """

    __slots__ = (
        "_cold",
        "_levels",
        "_may_try",
        "_notes",
        "_rates",
        "_rest",
        "_tries",
        "_untried",
        "_wait",
        "busy",
        "limit",
    )

    def __init__(self, threads: int, *, tries: bool = True) -> None:
        self.limit = threads
        """How many may be at work."""
        self.busy = 0
        """How many are."""
        self._may_try = tries and threads > 1
        self._tries = self._may_try
        self._levels = _halved(threads)
        """The numbers of threads that are tried, the largest first."""
        self._notes: list[float] = []
        """Seconds a sample in the chunks of the trial under way, over the threads at work."""
        self._rates: dict[int, float] = {}
        """Samples a second with each number of threads tried so far."""
        self._untried = self._all_levels()
        self._wait = 0
        self._cold = _CHUNKS_TRIED
        """Chunks that do not count yet: memory is new, and its pages come one by one; kernels are
        loaded. They take twice as long as later ones, which would count against all threads."""
        self._rest = _FIRST_REST

    def is_full(self) -> bool:
        """Whether no further thread is to begin a chunk."""
        return self.busy >= self.limit

    def enter(self) -> None:
        """Begin a chunk."""
        self.busy += 1

    def leave(
        self, beside: int, seconds: float | None, *, all_needed: bool, is_awaited: bool = False
    ) -> None:
        """End a chunk.

        Parameters
        ----------
        beside
            How many threads were at work when it began.
        seconds
            What it took of threads, for each of its samples; `None` where that says nothing.
        all_needed
            Whether all threads are to work without a trial; see `Program.needs_all_threads`.
        is_awaited
            Whether the consumer waits for what the threads do.
        """
        self.busy -= 1
        if seconds is not None:
            self.note(beside, seconds, all_needed=all_needed, is_awaited=is_awaited)

    def note(
        self, beside: int, seconds: float, *, all_needed: bool, is_awaited: bool = False
    ) -> None:
        """Take the time of a chunk into account; parameters are those of `leave`."""
        if not self._tries:
            return
        if all_needed:
            self.start_over()
            return
        if self._wait:
            self._wait -= 1
            if not self._wait:
                self._rates.clear()
                self._untried = self._neighbours()
            return
        # What far fewer threads do than may be at work says nothing about so many, unless they keep
        # the consumer from giving others something to do: it needs the interpreter for that, too.
        if 4 * beside < 3 * self.limit and not is_awaited:
            return
        if beside > self.limit:  # it began when more were at work
            return
        if self._cold:
            self._cold -= 1
            return
        self._notes.append(seconds / beside)
        if len(self._notes) < _CHUNKS_TRIED:
            return
        kept = sorted(self._notes)[:-_OUTLIERS]
        self._notes.clear()
        rates, here = self._rates, self.limit
        rates[here] = max(len(kept) / sum(kept), rates.get(here, 0.0))
        best = max(rates, key=rates.__getitem__)
        if here < best and rates[here] * _WORTH_IT < rates[best]:  # fewer do less still
            self._untried = tuple([count for count in self._untried if count > here])
        if self._untried:
            self.limit = self._untried[0]
            self._untried = self._untried[1:]
        else:
            self._choose()

    def _choose(self) -> None:
        """Go on with the fewest threads that make about as many samples as any number does."""
        enough = max(self._rates.values()) / _WORTH_IT
        self.limit = min(count for count, rate in self._rates.items() if rate >= enough)
        self._wait = self._rest
        self._rest = min(2 * self._rest, _LONGEST_REST)

    def _all_levels(self) -> tuple[int, ...]:
        """What is to be tried at first, after all threads: fewer, and then all of them once more.

        Their first rate may be far too low, as much memory is new then.
        """
        return (*self._levels[1:], self._levels[0])

    def _neighbours(self) -> tuple[int, ...]:
        """The numbers of threads next to the present one."""
        here = self._levels.index(self.limit)
        return self._levels[max(here - 1, 0) : here] + self._levels[here + 1 : here + 2]

    @property
    def threads(self) -> int:
        """How many threads there are."""
        return self._levels[0]

    def start_over(self, *, tries: bool = True, limit: int | None = None) -> None:
        """Forget what was measured, and have all threads work, or so many; measure again if it
        `tries`.
        """
        self._tries = self._may_try and tries
        self.limit = limit or self.threads
        self._notes.clear()
        self._rates.clear()
        self._untried = self._all_levels()
        self._wait = 0
        self._rest = _FIRST_REST


def _halved(threads: int) -> tuple[int, ...]:
    """`threads`, half of them, and so on, down to 1."""
    levels = [threads]
    while levels[-1] > 1:
        levels.append(levels[-1] // 2)
    return tuple(levels)
