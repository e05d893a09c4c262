"""Whether the consumer launches all stages itself: found out by measuring."""

from __future__ import annotations

_TRIED, _SETTLING, _COLD = 24, 8, 64
"""Iterations of a trial; those ahead of it, begun before, which do not count; and the first of all,
in which kernels are loaded and memory is new.
"""
_COUNTED = 0.75
"""The part of a trial's iterations that counts, the quickest: a consumer may pause now and then."""
_WORTH_IT = 1.03
"""How much longer an iteration has to take with threads that work ahead. These go on where the
consumer is busy for longer all of a sudden."""
_FIRST_REST, _LONGEST_REST = 512, 16384
"""Iterations between two trials."""
_BUSY_SECONDS, _LONG_SECONDS, _REMEMBERED = 0.0015, 0.002, 8
"""From when on a consumer is busy, so that threads had better work ahead. A mean of so many times
that it was away counts, the longest taken for so long, so that one pause changes nothing.
"""


class InlineChoice:
    """Whether the consumer launches all stages itself, or threads of streams work ahead of it.

    Threads do so while the consumer has other things to do. But they share the interpreter with it:
    each time that it calls a library, another thread may take the interpreter, and to get it back
    takes long on some machines. What is lost, and what is gained, depends on the machine, the
    program and the pipeline. How long the consumer stays away does not tell, either, since it is
    away for longer when it has to wait for the interpreter. So both are tried for some iterations.

    Attributes
    ----------
    is_inline
        Whether the consumer is to launch all stages.
    """

    __slots__ = ("_away", "_got", "_means", "_rest", "_settling", "_times", "_wait", "is_inline")

    def __init__(self) -> None:
        self.is_inline = False
        self._got = 0.0
        self._away = _LONG_SECONDS
        self._times: list[float] = []
        """Seconds of iterations of the present trial, from one that was handed over to the next."""
        self._means: dict[bool, float] = {}
        """By `is_inline`, seconds of the iterations of a trial that count."""
        self._settling = _COLD
        self._wait = 0
        """Iterations until the next trial; 0 during one."""
        self._rest = _FIRST_REST

    def begin_waiting(self, now: float) -> bool:
        """Note when the consumer asked for an iteration, in seconds; return `is_inline`."""
        self._away += (min(now - self._got, _LONG_SECONDS) - self._away) / _REMEMBERED
        if self._away > _BUSY_SECONDS and (self.is_inline or self._times):
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
        self._times.append(took)
        if len(self._times) < _TRIED:
            return
        kept = sorted(self._times)[: int(_COUNTED * _TRIED)]
        self._times.clear()
        self._means[self.is_inline] = sum(kept)
        if len(self._means) == 1:
            self.is_inline = not self.is_inline
            self._settling = _SETTLING
            return
        self.is_inline = self._means[True] * _WORTH_IT < self._means[False]
        self._wait, self._rest = self._rest, min(2 * self._rest, _LONGEST_REST)

    def _begin(self, *, inline: bool) -> None:
        """Begin with trials."""
        self.is_inline = inline
        self._times.clear()
        self._means.clear()
        self._settling, self._wait = _SETTLING, 0
