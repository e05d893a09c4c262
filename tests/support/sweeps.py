"""Which cases of a wide sweep run always, and which in nightly runs only."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence


def is_nightly(name: str, cases: Sequence[Mapping[str, int]]) -> list[bool]:
    """Tell which of the cases of the test `name` may wait.

    Parameters
    ----------
    name
        Decides on the order in which cases are looked at, which is a random one.
    cases
        For each case which value each parameter has, as any number that identifies it.

    Returns
    -------
    list of bool
        False for a case that has a value of a parameter for the first time.
    """
    order = random.Random(name).sample(range(len(cases)), len(cases))
    seen: set[tuple[str, int]] = set()
    nightly = [False] * len(cases)
    for index in order:
        values = set(cases[index].items())
        nightly[index] = values <= seen
        seen |= values
    return nightly
