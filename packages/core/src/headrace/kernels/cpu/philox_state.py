"""The state of a Philox4x32-10 generator: as integers, as text, and as the seed of one draw.

The state is a key, a position and a phase. The position is a 128-bit counter in two halves, of
which `offset` is the lower and `sequence` the upper; one value of the counter gives four words, and
the phase says which of them comes next. See `headrace.kernels.cpu.philox_draws` for the generator.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple, Self

import numpy as np

from headrace.errors import ArgumentValueError

_WORD_64 = (1 << 64) - 1
_COUNTER = (1 << 128) - 1
_TEXT = re.compile(r"Philox_([0-9A-Fa-f]{16})_([0-9A-Fa-f]{16}):([0-9A-Fa-f]{16})_([0-3])")
_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)

SEED_WORDS = 7
"""Words that the seed of one draw is made of."""


class PhiloxState(NamedTuple):
    """Key, counter and phase of a generator."""

    key: int
    sequence: int = 0
    offset: int = 0
    phase: int = 0

    @classmethod
    def parse(cls, text: str) -> PhiloxState:
        """The state written as ``Philox_<key>_<sequence>:<offset>_<phase>``."""
        found = _TEXT.fullmatch(text)
        if found is None:
            raise ArgumentValueError(
                f"{text!r} is no state of a Philox generator. That is written as "
                "'Philox_<key>_<sequence>:<offset>_<phase>', the first three as 16 hexadecimal "
                "digits each, the phase as a number from 0 to 3."
            )
        key, sequence, offset = (int(part, 16) for part in found.groups()[:3])
        return cls(key, sequence, offset, int(found[4]))

    def __str__(self) -> str:
        return f"Philox_{self.key:016X}_{self.sequence:016X}:{self.offset:016X}_{self.phase}"

    def advanced(self, count: int) -> PhiloxState:
        """The state `count` words later."""
        position = (self.sequence << 64 | self.offset) * 4 + self.phase + count
        counter = (position >> 2) & _COUNTER
        return PhiloxState(self.key, counter >> 64, counter & _WORD_64, position & 3)


class DrawSeed(int):
    """Seed of a random operator: the state of a generator.

    As an integer it is the key alone, so that it serves wherever a seed does. Random operators read
    all of it. A call of dynamic mode has one, made of seven words of a generator; an operator of a
    pipeline one for all iterations.
    """

    state: PhiloxState
    """The state in iteration 0."""
    batch_size: int = 0
    """Distance that the sequence advances in each iteration."""
    rng: Any = None
    """The generator that gave the words, and how many it had given before them."""
    place: int = 0

    def __new__(cls, words: list[int]) -> Self:
        """Make a seed of seven 32-bit words."""
        w0, w1, w2, w3, w4, w5, w6 = words
        self = int.__new__(cls, w0 | w1 << 32)
        self.state = PhiloxState(int(self), w4 | w5 << 32, w2 | w3 << 32, w6 & 3)
        return self

    @classmethod
    def of_pipeline(cls, seed: int, batch_size: int) -> Self:
        """The seed of an operator of a pipeline with batches of `batch_size` samples."""
        return cls._of_state(PhiloxState(seed & _WORD_64), batch_size)

    @classmethod
    def _of_state(cls, state: PhiloxState, batch_size: int) -> Self:
        self = int.__new__(cls, state.key)
        self.state = state
        self.batch_size = batch_size
        return self

    def at(self, iteration: int) -> PhiloxState:
        """The state in an iteration."""
        state = self.state
        sequence = (state.sequence + iteration * self.batch_size) & _WORD_64
        return PhiloxState(state.key, sequence, state.offset, state.phase)

    def __reduce__(self) -> Any:
        return DrawSeed._of_state, (self.state, self.batch_size)


EXAMPLE_SEED = DrawSeed([0] * SEED_WORDS)
"""Of operators that get their seeds with each iteration: to try out what comes out of them."""


def drawn_with(words: np.ndarray | None, seed: Any = None) -> Any:
    """The seed of a call that was given the `words` of a state; `seed` where it was not."""
    return seed if words is None else DrawSeed(words.tolist())


def words_of(state: PhiloxState, blocks: int) -> list[int]:
    """The words of `blocks` values of the counter, four each, from that of `state` on.

    Vectorised NumPy: a thousand words take about 0.1 ms, without a compiled kernel.
    """
    start = state.sequence << 64 | state.offset
    low = np.arange(blocks, dtype=np.uint64) + np.uint64(start & _WORD_64)
    high = np.full(blocks, start >> 64, np.uint64)
    high[low < np.uint64(start & _WORD_64)] += np.uint64(1)  # the lower half has overflowed
    w0, w1, w2, w3 = low & _LOW, low >> _HALF, high & _LOW, high >> _HALF
    key0, key1 = state.key & 0xFFFFFFFF, state.key >> 32
    for _ in range(10):
        p0 = w0 * np.uint64(0xD2511F53)
        p1 = w2 * np.uint64(0xCD9E8D57)
        w0 = (p1 >> _HALF) ^ w1 ^ np.uint64(key0)
        w2 = (p0 >> _HALF) ^ w3 ^ np.uint64(key1)
        w1, w3 = p1 & _LOW, p0 & _LOW
        key0 = (key0 + 0x9E3779B9) & 0xFFFFFFFF
        key1 = (key1 + 0xBB67AE85) & 0xFFFFFFFF
    return np.stack((w0, w1, w2, w3), axis=1).ravel().tolist()  # type: ignore[no-any-return]
