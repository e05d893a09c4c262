"""Number of threads that carry samples through a stage at once, tuned by measurement.

Threads share one interpreter. Where a sample is mostly interpreted code, further threads bring
nothing: they pass the lock back and forth, and each handover costs more than the work done in
between. Where pixels are the work, each thread counts. The best number cannot be computed
beforehand, so a stage is run with a few threads, with half as many as long as these do not do
clearly less, and with twice as many as long as these do clearly more, for a while each; and with
the best number from then on. The results do not depend on it.

Worker processes have interpreters of their own: with them nothing is tried.
"""

from __future__ import annotations

_CHUNKS_TRIED, _CHUNKS_TELLING = 24, 8
"""Chunks of a trial, and after how many it ends where these threads do far less than others did."""
_FAR_LESS = 1.5
_COUNTED = 0.75
"""The part of a trial's chunks that counts, the quickest: for others a kernel was compiled, or a
thread was put aside."""
_FIRST_TRIED = 4
"""Threads that are tried first. More may do far less, which would cost most at the start."""
_FIRST_REST = 250
_LONGEST_REST = 16000
"""Chunks between two trials."""
_WORTH_IT = 1.1
"""Factor of throughput that a larger number of threads must gain over a smaller one, as it takes
processor time from everything else."""


class Concurrency:
    """Limits the threads of one stage; all methods are called under the lock of the executor."""

    __slots__ = (
        "_cold",
        "_first",
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

    def __init__(self, threads: int, *, tries: bool = True, first: int = _FIRST_TRIED) -> None:
        self._may_try = tries and threads > 1
        self._tries = self._may_try
        self._levels = levels = _halved(threads)
        """The numbers of threads that are tried, the largest first."""
        self._first = max([n for n in levels if n <= first])
        self.limit = self._first if self._tries else threads
        """Number of threads that may be at work."""
        self.busy = 0
        """Number of threads at work."""
        self._notes: list[float] = []
        """Seconds a sample in the chunks of the trial under way, over the threads at work."""
        self._rates: dict[int, float] = {}
        """Samples a second with each number of threads tried so far."""
        self._untried: tuple[int, ...] | None = self._others()
        """`None` as long as all threads work without a trial."""
        self._wait = 0
        self._cold = _CHUNKS_TRIED
        """Chunks that do not count yet: memory is new, and its pages come one by one; kernels are
        loaded. They take twice as long as later ones, which would count against all threads."""
        self._rest = _FIRST_REST

    def is_full(self) -> bool:
        """True if no further thread may begin a chunk."""
        return self.busy >= self.limit

    def enter(self) -> None:
        """Begin a chunk."""
        self.busy += 1

    def leave(
        self, beside: int, seconds: float | None, *, all_needed: bool, is_awaited: bool = False
    ) -> None:
        """End a chunk that began with `beside` threads at work and took `seconds` of threads for
        each sample (None: not representative). With `all_needed` all threads work, without trials.
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
        if self._untried is None:
            self.limit = self._first
            self._untried = self._others()
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
        tried = len(self._notes)
        if tried not in (_CHUNKS_TELLING, _CHUNKS_TRIED):
            return
        kept = sorted(self._notes)[: int(_COUNTED * tried)]
        rates, here, rate = self._rates, self.limit, len(kept) / sum(kept)
        if tried < _CHUNKS_TRIED and _FAR_LESS * rate > max(rates.values(), default=0.0):
            return
        self._notes.clear()
        rates[here] = max(rate, rates.get(here, 0.0))
        best = max(rates, key=rates.__getitem__)
        # Fewer than do clearly less do less still; where more bring nothing, more still do not.
        least = max(
            [n for n in rates if n < best and rates[n] * _WORTH_IT < rates[best]], default=0
        )
        fewer = [rate for n, rate in rates.items() if n < here]
        most = here - 1 if fewer and rates[here] < _WORTH_IT * max(fewer) else self.threads
        self._untried = tuple([n for n in self._untried if least <= n <= most])
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

    def _others(self) -> tuple[int, ...]:
        """Numbers of threads to try after the present one: fewer, the same once more, and more.

        The first measurement may be far too low, as memory is allocated during it.
        """
        here = self._levels.index(self.limit)
        return (*self._levels[here + 1 :], self.limit, *self._levels[:here][::-1])

    def _neighbours(self) -> tuple[int, ...]:
        """The numbers of threads next to the present one."""
        here = self._levels.index(self.limit)
        return self._levels[max(here - 1, 0) : here] + self._levels[here + 1 : here + 2]

    @property
    def threads(self) -> int:
        """Number of threads."""
        return self._levels[0]

    def start_over(self, *, tries: bool = True, limit: int | None = None) -> None:
        """Forget measurements and use all threads, or the given number; measure again if it
        `tries`.
        """
        self._tries = self._may_try and tries
        self.limit = limit or self.threads
        self._notes.clear()
        self._rates.clear()
        self._untried = None
        self._wait = 0
        self._rest = _FIRST_REST


def _halved(threads: int) -> tuple[int, ...]:
    """`threads`, half of them, and so on, down to 1."""
    levels = [threads]
    while levels[-1] > 1:
        levels.append(levels[-1] // 2)
    return tuple(levels)
