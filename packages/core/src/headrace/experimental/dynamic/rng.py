"""Generators of random numbers for dynamic mode."""

from __future__ import annotations

import secrets
import threading
from typing import Any, NoReturn, final

from headrace.errors import ArgumentTypeError, ArgumentValueError, MisusedArgumentError
from headrace.kernels.cpu.philox_state import (
    SEED_WORDS,
    DrawSeed,
    PhiloxState,
    words_of,
)
from headrace.tracebacks import public_methods

_THREAD = threading.local()
_WORD_64 = (1 << 64) - 1
_BLOCKS = 256
_JUMP = 1 << 80
"""More words than a program takes: counts from before the state was set stay far away."""


class State(str):
    """State of an `RNG`: its text is ``Philox_<key>_<sequence>:<offset>_<phase>``."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"Philox4x32_10.State({str(self)!r})"


@final
@public_methods
class RNG:
    """A generator of random numbers, Philox4x32-10, for operators that draw.

    Each call of such an operator takes seven words of it, whatever it draws. Its numbers follow
    from these words, the position of the sample in its batch and that of the element in the sample.
    So the same seed and the same calls give the same numbers. A generator may be shared by threads,
    but then it is up to chance which call gets which words: give each thread one of its own.

    Parameters
    ----------
    seed
        An integer, of which the lowest 64 bits count. Without it and `state`, every generator is
        a different one.
    state
        What `get_state` of another generator returned, or its text.

    Raises
    ------
    ArgumentValueError
        If both are given, or `state` is no state.
    ArgumentTypeError
        If `seed` is no integer or `state` no string.
    """

    __slots__ = ("__weakref__", "_first", "_lock", "_next", "_words", "count")

    def __init__(self, seed: int | None = None, state: str | None = None) -> None:
        if seed is not None and state is not None:
            raise MisusedArgumentError(
                "`seed` and `state` both say where the generator begins; give one of them."
            )
        self._lock = threading.Lock()
        self.count = 0
        """Number of words taken; `state` sets it."""
        if state is not None:
            self._begin(_parsed(state))
        else:
            self._begin(PhiloxState(secrets.randbits(64) if seed is None else _key(seed)))

    def _begin(self, state: PhiloxState) -> None:
        with self._lock:
            self._first = state
            """The state at the first of `_words`."""
            self._words: list[int] = []
            self._next = 0

    def __call__(self) -> int:
        """Take the next word: an integer of 32 bits."""
        return self.take(1)[0]

    def draw_seed(self) -> DrawSeed:
        """Take the seven words that are the seed of one call of an operator."""
        seed = DrawSeed(self.take(SEED_WORDS))
        seed.rng = self
        seed.place = self.count - SEED_WORDS
        return seed

    def take(self, count: int) -> list[int]:
        """Take the next `count` words."""
        with self._lock:
            self.count += count
            start = self._next
            taken = self._words[start : start + count]
            self._next = start + len(taken)
            if len(taken) < count:
                missing = count - len(taken)
                first = self._first = self._first.advanced(self._next)
                self._words = words_of(first._replace(phase=0), _BLOCKS)[first.phase :]
                taken = taken + self._words[:missing]
                self._next = missing
        return taken

    def advance(self, count: int) -> None:
        """Leave out the next `count` words.

        Raises
        ------
        ArgumentValueError
            If `count` is negative.
        ArgumentTypeError
            If it is no integer.
        """
        if not hasattr(count, "__index__"):
            raise ArgumentTypeError(f"`count` is a number of words, an integer; got {count!r}.")
        count = count.__index__()
        if count < 0:
            raise ArgumentValueError(f"`count` is {count}, but a generator cannot go backwards.")
        self._begin(self.snapshot().advanced(count))
        self.count += count

    def snapshot(self) -> PhiloxState:
        """The state as integers."""
        with self._lock:
            return self._first.advanced(self._next)

    def clone(self) -> RNG:
        """Another generator in the same state."""
        return RNG(state=self.get_state())

    def get_state(self, *, cuda_stream: Any = None) -> State:
        """The state, from which `set_state` goes on.

        Parameters
        ----------
        cuda_stream
            For readers, whose state may have to wait for it. That of a generator is on the host,
            and the same whatever is given.
        """
        return State(self.snapshot())

    def set_state(self, state: str) -> None:
        """Go on from a state of this or another generator.

        Raises
        ------
        ArgumentValueError
            If `state` is no state of a generator.
        ArgumentTypeError
            If it is no string.
        """
        parsed = _parsed(state)
        self._begin(parsed)
        self.count += _JUMP

    @property
    def state(self) -> State:
        """The state; may be set."""
        return self.get_state()

    @state.setter
    def state(self, state: str) -> None:
        self.set_state(state)

    def _no_seed(self) -> NoReturn:
        raise AttributeError("`seed` can be set only: the seed of a generator is not kept.")

    def _set_seed(self, seed: int) -> None:
        key = _key(seed)
        self._begin(PhiloxState(key))
        self.count += _JUMP

    seed = property(_no_seed, _set_seed, doc="Setting it starts the generator anew.")

    def __repr__(self) -> str:
        return f"RNG(state={str(self.get_state())!r})"

    def __reduce__(self) -> Any:
        return RNG, (None, str(self.get_state()))


def _key(seed: Any) -> int:
    if not hasattr(seed, "__index__"):
        raise ArgumentTypeError(f"`seed` is an integer, got {seed!r} of {type(seed).__name__}.")
    return int(seed.__index__()) & _WORD_64


def _parsed(state: Any) -> PhiloxState:
    if not isinstance(state, str):
        raise ArgumentTypeError(
            f"`state` is what `RNG.get_state()` returned, or its text; got {state!r}."
        )
    return PhiloxState.parse(str(state))


def get_default_rng() -> RNG:
    """The calling thread's generator, which operators draw from without an `rng` of their own."""
    rng: RNG | None = getattr(_THREAD, "rng", None)
    if rng is None:
        rng = _THREAD.rng = RNG()
    return rng


def set_seed(seed: int) -> None:
    """Start the calling thread's generator anew.

    Parameters
    ----------
    seed
        An integer, of which the lowest 64 bits count.

    Raises
    ------
    ArgumentTypeError
        If it is no integer.
    """
    get_default_rng().seed = seed


def resolve_rng(rng: Any) -> RNG:
    """The generator to draw from, where `rng` was given as an argument."""
    if rng is None:
        return get_default_rng()
    if not isinstance(rng, RNG):
        raise ArgumentValueError(
            f"`rng` must be a headrace.experimental.dynamic.random.RNG, got {rng!r} of type "
            f"{type(rng).__name__}."
        )
    return rng
