"""Which cases of a wide sweep run always, and which in nightly runs only."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pytest


def always(*kept: str, of: Iterable[str]) -> list[Any]:
    """Values of a parameter of which those `kept` run always, and the others in nightly runs."""
    names = list(of)
    assert set(kept) < set(names)
    return [n if n in kept else pytest.param(n, marks=pytest.mark.nightly) for n in names]


def is_nightly(name: str, cases: Sequence[Mapping[str, int]], *, pairs: bool = False) -> list[bool]:
    """Tell which of the cases of the test `name` may wait.

    Parameters
    ----------
    name
        Decides on the order in which cases are looked at, which is a random one.
    cases
        For each case which value each parameter has, as any number that identifies it.
    pairs
        Let every two values of two parameters come together in a case that does not wait.

    Returns
    -------
    list of bool
        True for cases without which each value of each parameter (each pair, respectively) comes in
        another one, too. Of those left, which are few, each brought more than any other one would.
    """
    order = random.Random(name).sample(range(len(cases)), len(cases))
    brought = [
        set(itertools.combinations(sorted(case.items()), 2) if pairs else case.items())
        for case in cases
    ]
    missing = set().union(*brought)
    nightly = [True] * len(cases)
    while missing:
        best = max(order, key=lambda index: len(brought[index] & missing))
        nightly[best] = False
        missing -= brought[best]
    return nightly
