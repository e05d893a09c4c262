"""Samples of a batch that a node runs for, selected by the predicates of its guard.

Batches between stages have a position for every sample. In those of a guarded node the positions of
other samples are empty and never read. Readers of whole batches (operators of batches, the GPU, the
user) get them packed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import takewhile
from typing import Any

import numpy as np

from headrace.operators.support.planning import Samples

Guard = tuple[tuple[int, bool], ...]
"""Registers of predicates, outermost first, and whether each has to be true."""

Choices = tuple[tuple[Guard, bool], ...]
"""Guards, and whether any sample of a batch is one that they select."""


def members(guard: Guard, buffers: Sequence[Any], size: int) -> np.ndarray:
    """Positions in the batch of the samples that `guard` selects, int64, in order."""
    found = np.arange(size)
    for r, wanted in guard:
        if not len(found):
            break  # what an inner predicate is made of was never made
        dense = buffers[r].dense
        if dense is None:
            rows = buffers[r].rows
            truth = np.array([bool(rows[k]) for k in found.tolist()], bool)
        else:
            truth = dense[found] != 0
        found = found[truth == wanted]
    return found


def chosen_branches(
    guards: Iterable[Guard], reads: Sequence[int], buffers: Sequence[Any], size: int
) -> Choices:
    """Return the guards that select samples, as far as their predicates are available in `reads` as
    numbers.
    """

    def is_known(term: tuple[int, bool]) -> bool:
        buffer = buffers[term[0]] if term[0] in reads else None
        return buffer is not None and not buffer.spec.ndim

    found = []
    for guard in dict.fromkeys(guards):
        known = tuple(takewhile(is_known, guard))
        any_taken = len(members(known, buffers, size)) > 0
        if known == guard or not any_taken:
            found.append((guard, any_taken))
    return tuple(found)


class Selection:
    """The samples of guards in one iteration, found out when they are asked for."""

    def __init__(self, buffers: Sequence[Any], size: int) -> None:
        self._buffers = buffers
        self._size = size
        self._found: dict[Guard, np.ndarray] = {}

    def of(self, guard: Guard) -> np.ndarray:
        """Positions of the samples that `guard` selects, int64, in order."""
        found = self._found.get(guard)
        if found is None:
            found = self._found[guard] = members(guard, self._buffers, self._size)
        return found

    def within(self, outer: Guard, inner: Guard) -> np.ndarray:
        """Positions of the samples of `inner` among those of `outer`."""
        found: np.ndarray = np.searchsorted(self.of(outer), self.of(inner))
        return found


def chosen(
    guard: Guard,
    known: Mapping[int, Samples] | Sequence[Samples | None],
    found: dict[Guard, Sequence[int] | None],
) -> Sequence[int] | None:
    """The same from the columns of predicates; `None` where one of these is not known.

    What guards select is kept in `found`, as others begin with them; what the empty guard selects
    has to be there.
    """
    if guard in found:
        return found[guard]
    places = chosen(guard[:-1], known, found)
    if places:
        r, wanted = guard[-1]
        samples = known[r]
        if samples is None or not samples.are_there:
            places = None
        else:
            dense = samples.dense
            rows = samples.rows if dense is None else dense.tolist()
            places = [k for k in places if bool(rows[k]) is wanted]
    found[guard] = places
    return places


def spread(values: np.ndarray, places: Sequence[int] | np.ndarray, count: int) -> np.ndarray:
    """`values`, a row a sample, as rows of `count` samples: those at `places`. Others are zero."""
    made = np.zeros((count, *values.shape[1:]), values.dtype)
    made[places] = values
    return made
