"""From the random numbers that a call takes out of a generator to the seed of its stream."""

from __future__ import annotations

import importlib
from typing import Any

from penstock.errors import ArgumentValueError

_RANDOM = "penstock.experimental.dynamic.random"
WORDS = 7
"""How many numbers of 32 bits every call takes, whatever it does with them; as many as in DALI."""


def drawn_seed(rng: Any) -> int:
    """The seed of a call's random stream, from `rng` or the thread's own generator.

    Raises
    ------
    ArgumentValueError
        If `rng` is no generator.
    """
    if rng is None:
        rng = importlib.import_module(_RANDOM).get_default_rng()
    if not callable(rng):
        raise ArgumentValueError(
            f"`rng` is a generator such as `random.RNG(seed)`, got {rng!r} of type "
            f"{type(rng).__name__}."
        )
    words = [rng() for _ in range(WORDS)]
    first, second = int(words[0]), int(words[1])
    return (first | second << 32) & (1 << 63) - 1
