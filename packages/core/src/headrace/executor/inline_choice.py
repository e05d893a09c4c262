"""Choice, by measurement, whether the consumer launches all stages itself."""

from __future__ import annotations

_TURNS, _TRIED, _SETTLING, _COLD = 6, 16, 8, 64
"""A trial has so many turns of the one and the other, which measure so many iterations each; those
ahead of a turn, begun before, which do not count; and the first of all, in which kernels are loaded
and memory is new. In turns, because a machine may be slower for some milliseconds.
"""
_COUNTED = 0.75
"""The part of a trial's iterations that counts, the quickest: a consumer may pause now and then."""
_FAVOUR = 1.25
"""Factor by which an iteration may be slower in a trial where the consumer launches all stages.
Threads that work ahead need up to twice the processor time; and a consumer that never sleeps
becomes quicker after some seconds: an H200's host took 300 microseconds an iteration then, and 530
to 600 in trials (490 to 610 with threads)."""
_FIRST_REST, _LONGEST_REST = 1024, 16384
"""Iterations between two trials."""
_BUSY_SECONDS, _LONG_SECONDS, _REMEMBERED = 0.0015, 0.002, 8
"""From when on a consumer is busy, so that threads had better work ahead. A mean of so many times
that it was away counts, the longest taken for so long, so that one pause changes nothing.
"""


class InlineChoice:
    """Chooses whether the consumer launches all stages itself, or threads of streams work ahead of
    it.

    Threads work while the consumer does other things. But they share the interpreter with it: each
    time the consumer calls a library, another thread may take the interpreter, and getting it back
    takes long on some machines. The gain and the loss depend on the machine, the program and the
    pipeline. The time between calls of the consumer does not tell, as it includes waiting for the
    interpreter. So both are tried in turn.

    Attributes
    ----------
    is_inline
        True if the consumer launches all stages.
    """

    __slots__ = ("_away", "_got", "_rest", "_settling", "_times", "_wait", "is_inline")

    def __init__(self) -> None:
        self.is_inline = False
        self._got = 0.0
        self._away = _LONG_SECONDS
        self._times: dict[bool, list[float]] = {False: [], True: []}
        """By `is_inline`, seconds of iterations of the present trial, from one that was handed over
        to the next."""
        self._settling = _COLD
        self._wait = 0
        """Iterations until the next trial; 0 during one."""
        self._rest = _FIRST_REST

    def begin_waiting(self, now: float) -> bool:
        """Note when the consumer asked for an iteration, in seconds; return `is_inline`."""
        self._away += (min(now - self._got, _LONG_SECONDS) - self._away) / _REMEMBERED
        if self._away > _BUSY_SECONDS and (self.is_inline or any(self._times.values())):
            self._begin(inline=False)
        return self.is_inline

    def end_waiting(self, now: float) -> None:
        """Note when it got one, in seconds."""
        took, self._got = now - self._got, now
        if self._away > _BUSY_SECONDS:
            return
        if self._wait:
            self._wait -= 1
            if not self._wait:
                self._begin(inline=self.is_inline)
            return
        if self._settling:
            self._settling -= 1
            return
        self._times[self.is_inline].append(took)
        measured = sum(map(len, self._times.values()))
        if measured % _TRIED:
            return
        if measured < _TURNS * _TRIED:
            self.is_inline = not self.is_inline
            self._settling = _SETTLING
            return
        inline, ahead = (
            sum(sorted(times)[: int(_COUNTED * len(times))])
            for times in (self._times[True], self._times[False])
        )
        self._begin(inline=inline < ahead * _FAVOUR)
        self._wait, self._rest = self._rest, min(2 * self._rest, _LONGEST_REST)

    def _begin(self, *, inline: bool) -> None:
        """Forget what was measured, and begin with trials."""
        self.is_inline = inline
        for times in self._times.values():
            times.clear()
        self._settling, self._wait = _SETTLING, 0
