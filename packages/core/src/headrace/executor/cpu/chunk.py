"""The samples that a worker has taken, as columns, and groups of them that are hot in the cache."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.errors import located
from headrace.executor.source_names import SourceNames, some_of
from headrace.operators.support.lazy_value import LazyValue
from headrace.operators.support.planning import SMALL_ELEMENTS, Samples
from headrace.tensors.rows import Rows

if TYPE_CHECKING:
    from headrace.executor.cpu.batch import BatchBuffer
    from headrace.executor.guards import Guard
    from headrace.executor.step import Step
    from headrace.operators.support.contexts import SampleContext

_LIGHT_BYTES = 48 << 10
"""Bytes of a sample above which the interpreter's way to it is small beside its pixels."""


class Chunk:
    """Samples that a worker has taken, as columns: the data of each register.

    `indices`: positions of the samples in their batch. `columns`: for each register its samples, or
    what is planned of them; `None` where nothing is known. `sources`: for each register that is
    read from files, or that comes from an earlier stage, where each sample was read from (see
    `Step.origin`). `failures`: samples that failed, and how.
    """

    __slots__ = ("columns", "failures", "indices", "sources")

    def __init__(self, indices: list[int], registers: int) -> None:
        self.indices = indices
        self.columns: list[Samples | None] = [None] * registers
        self.sources: dict[int, list[str] | SourceNames] = {}
        self.failures: list[tuple[int, BaseException]] = []

    def indices_at(self, positions: Sequence[int]) -> list[int]:
        """Return the indices in the batch of the samples at `positions` of the chunk."""
        if isinstance(positions, range):
            return self.indices[positions.start : positions.stop]
        return [self.indices[k] for k in positions]

    def leave_out(self, register: int, ndim: int | None) -> None:
        """Note that no sample has anything on a register, which has so many axes."""
        nothing = np.zeros((len(self.indices), ndim or 0), np.int64)
        self.columns[register] = Samples(shapes=nothing)

    def keep(self, positions: Sequence[int]) -> None:
        """Go on with these samples alone."""
        self.indices = [self.indices[k] for k in positions]
        for r, known in enumerate(self.columns):
            if known is not None:
                self.columns[r] = Samples([known.rows[k] for k in positions])
        for r, sources in self.sources.items():
            self.sources[r] = some_of(sources, positions)

    def has_few_bytes(self) -> bool:
        """Return True if samples that are there have few bytes, judged by the first of them."""
        for column in self.columns:
            if column is not None and column.are_there:
                dense = column.dense
                first = column.rows[0] if dense is None else dense[0]
                if getattr(first, "nbytes", _LIGHT_BYTES) >= _LIGHT_BYTES:
                    return False
        return True

    def fail(self, error: BaseException, step: Step, context: SampleContext, position: int) -> None:
        """Note that a step has failed for a sample."""
        context.position = position
        index = self.indices[position]
        try:
            raise located(error, step.node.where(index, context.source))
        except BaseException as found:
            self.failures.append((index, found))

    def merge_sources(self, step: Step, branch: int, positions: Sequence[int]) -> None:
        """Note where the samples of one branch of a merged batch come from, if not all of them
        come from the same source.
        """
        sources = self.sources.get(step.branch_origins[branch])
        if step.origin in step.outputs and sources is not None:
            for position in positions:
                self.sources[step.origin][position] = sources[position]


def samples_of(batch: BatchBuffer, indices: list[int]) -> Samples:
    """Some samples of a batch; as one array where they are neighbours in it."""
    dense = batch.dense
    first, count = indices[0], len(indices)
    if dense is not None and indices[-1] - first == count - 1:
        part = dense[first : first + count]
        is_small = part.size <= SMALL_ELEMENTS * count
        return Samples(values=part) if is_small else Samples(whole=part)
    rows = batch.rows
    return Samples([rows[k] for k in indices])


class Group:
    """Samples of a chunk that go through the steps together, while they are in the cache.

    `positions`: their positions in the chunk. `values`: for each register the samples: a list,
    `Rows`, or one lazy value for all of them.
    """

    __slots__ = ("_branches", "_columns", "_made", "_root", "_selected", "positions", "values")

    def __init__(
        self,
        columns: list[Samples | None],
        positions: Sequence[int],
        selected: Mapping[Guard, Sequence[int] | None],
        root: Group | None = None,
    ) -> None:
        self._columns = columns
        self._selected = selected
        """Samples of the whole chunk that guards select, as far as that is known."""
        self.positions = positions
        self.values: dict[int, Any] = {}
        self._root = root
        """Group this is a branch of; `None` for the group itself."""
        self._branches: dict[Guard, Group] = {}
        self._made: dict[int, Group] = {}
        """The branch in which a register is made."""

    def branch(self, guard: Guard) -> Group:
        """The samples of the group, or of what it is a branch of, that `guard` selects."""
        if self._root is not None:
            return self._root.branch(guard)
        if not guard:
            return self
        found = self._branches.get(guard)
        if found is None:
            outer, selected = self.branch(guard[:-1]), self._selected
            positions, among = selected.get(guard), selected.get(guard[:-1])
            if positions is None or among is None or len(among) != len(outer.positions):
                r, wanted = guard[-1]
                truth = outer.truth(r)
                positions = [p for k, p in enumerate(outer.positions) if truth[k] is wanted]
            found = self._branches[guard] = Group(self._columns, positions, selected, self)
        return found

    def of(self, register: int) -> Any:
        """The samples of a register."""
        found = self.values.get(register)
        if found is None:
            found = self.values[register] = self.samples(register, self.positions)
        return found

    def truth(self, register: int) -> list[bool]:
        """The samples of a predicate."""
        known = self._columns[register]
        dense = None if known is None else known.dense
        if dense is None or dense.ndim != 1:
            return list(map(bool, self.of(register)))
        at = self.positions
        part = dense[at.start : at.stop] if isinstance(at, range) else dense[at]
        return part.astype(bool, copy=False).tolist()  # type: ignore[no-any-return]

    def samples(self, register: int, positions: Sequence[int]) -> Any:
        """Some samples of a register, which some branch of the group has."""
        if not positions:
            return []
        root = self._root or self
        maker = root._made.get(register, root)
        values = maker.values.get(register)
        if values is not None and len(positions) == len(maker.positions):
            return values  # of all of them
        if values is not None:
            place = {position: k for k, position in enumerate(maker.positions)}
            return subset(values, [place[p] for p in positions])
        known = self._columns[register]
        assert known is not None
        dense = known.dense
        # Views of all samples of the chunk are made once; `Rows` of one would cost more than those.
        if dense is not None and isinstance(positions, range) and len(positions) > 1:
            return Rows.of_array(dense[positions.start : positions.stop])
        rows = known.rows
        if isinstance(rows, Rows) and len(positions) == len(rows):
            return rows
        rows = known.row_list
        return [rows[k] for k in positions]

    def put(self, register: int, values: Any) -> None:
        """Store the results of a step."""
        self.values[register] = values
        if self._root is not None:
            self._root._made[register] = self

    def drop(self, failed: Sequence[int]) -> None:
        """Go on without those at these places of the group."""
        root = self._root or self
        positions = {self.positions[k] for k in failed}
        for group in (root, *root._branches.values()):
            kept = [k for k, position in enumerate(group.positions) if position not in positions]
            group.positions = [group.positions[k] for k in kept]
            for r, values in group.values.items():
                group.values[r] = subset(values, kept)

    def close(self) -> None:
        """Forget its branches, which refer to it: memory must be free once it is unused."""
        self._branches.clear()
        self._made.clear()


def subset(values: Any, kept: Sequence[int]) -> Any:
    """Some samples of a group; `None` where they are not read."""
    if isinstance(values, list):
        return [values[k] for k in kept]
    return None if values is None else values.subset(kept)


def are_arrays(samples: Any) -> bool:
    """True if samples of a group are there, and none is a lazy value."""
    if isinstance(samples, list):
        return set(map(type, samples)) == {np.ndarray}
    return isinstance(samples, Rows)


def known(rows: Any) -> Samples:
    """Return the known data of the samples of a group: for lazy ones their shapes alone."""
    return Samples(shapes=rows.shapes) if isinstance(rows, LazyValue) else Samples(rows)


def rows_of(samples: Samples | None) -> Any:
    """Samples as `Rows`, if they are arrays; `None` if they are not there."""
    if samples is None or not samples.are_there:
        return None
    dense = samples.dense
    if dense is not None:
        return Rows.of_array(np.ascontiguousarray(dense))
    rows = samples.rows
    return Rows(rows) if isinstance(rows, list) and are_arrays(rows) else rows
