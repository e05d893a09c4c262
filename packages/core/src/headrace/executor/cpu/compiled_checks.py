"""Checks of the memory that instructions touch, for tests: a wrong address is a crash otherwise."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.operators.support.compiled_steps import SampleColumns

if TYPE_CHECKING:
    from headrace.executor.cpu.compiled_program import CompiledProgram


class CheckedMemory:
    """Pieces of memory that a chunk may read and write.

    `columns`: the table of its samples, int64 ``(columns, samples)``.
    """

    def __init__(self, columns: np.ndarray) -> None:
        self._columns = columns
        self._begins: list[int] = []
        self._ends: list[int] = []

    def add(self, begin: int, size: int) -> None:
        """Add a piece of so many bytes."""
        if size:
            at = bisect_right(self._begins, begin)
            self._begins.insert(at, begin)
            self._ends.insert(at, begin + size)

    def add_samples(self, own: SampleColumns) -> None:
        """Add all samples of a register."""
        for k in range(self._columns.shape[1]):
            begin, end = self._span(own, k)
            self.add(begin, end - begin)

    def check(self, own: SampleColumns, k: int, what: str) -> None:
        """Raise `AssertionError` unless sample `k` of a register lies in one of the pieces."""
        begin, end = self._span(own, k)
        if begin == end:
            return
        at = bisect_right(self._begins, begin) - 1
        if at < 0 or end > self._ends[at]:
            extents = self._columns[own.extents : own.extents + own.ndim, k].tolist()
            raise AssertionError(
                f"{what} is at {begin:#x} to {end:#x}, outside of all memory of the chunk: sample "
                f"{k}, extents {extents}, columns {tuple(own)[2:]}."
            )

    def _span(self, own: SampleColumns, k: int) -> tuple[int, int]:
        """First byte of a sample, and one past its last."""
        columns = self._columns
        extents = columns[own.extents : own.extents + own.ndim, k].tolist()
        begin = int(columns[own.address, k])
        if min(extents, default=1) <= 0:
            return begin, begin
        size = own.dtype.itemsize
        if own.strides < 0:
            return begin, begin + size * int(np.prod(extents, dtype=np.int64))
        strides = columns[own.strides : own.strides + own.ndim, k].tolist()
        reach = [(e - 1) * s for e, s in zip(extents, strides, strict=True)]
        end = begin + sum(max(r, 0) for r in reach) + size
        return begin + sum(min(r, 0) for r in reach), end


def carry_checked(
    program: CompiledProgram,
    columns: np.ndarray,
    scratch: np.ndarray,
    slots: np.ndarray,
    carry: Callable[[int, int, int], Any],
) -> None:
    """Carry samples step by step; after each, what it has made has to lie in known memory.

    `scratch`: uint8, memory that `slots` share. `carry`: carries a sample through instructions
    ``first <= i < last``.
    """
    memory = CheckedMemory(columns)
    registers: Iterable[SampleColumns] = (*program.given.values(), *(c for _, c in program.leaving))
    for own in registers:
        memory.add_samples(own)
    memory.add(scratch.__array_interface__["data"][0], scratch.nbytes)
    _check_slots(columns, scratch, slots)
    for k in range(columns.shape[1]):
        first = 0
        for step, count in program.counts:
            carry(k, first, first + count)
            for r in step.outputs:
                own = program.made[r]
                if isinstance(own, SampleColumns):
                    memory.check(own, k, f"What `{step.node.schema.name}` made")
            first += count


def _check_slots(columns: np.ndarray, scratch: np.ndarray, slots: np.ndarray) -> None:
    """Check that pieces of scratch memory lie side by side, each long enough for all samples."""
    if not scratch.nbytes:
        return  # no sample has anything there
    start = scratch.__array_interface__["data"][0]
    before = start
    for address, extents, axes, size, *_ in slots.tolist():
        begins = columns[address]
        volumes = np.prod(columns[extents : extents + axes], axis=0) if axes else 1
        ends = begins + volumes * size
        if (begins < before).any() or (ends > start + scratch.nbytes).any():
            raise AssertionError(
                f"Scratch memory of column {address} begins at {begins.min():#x} and ends at "
                f"{ends.max():#x}; that before it ends at {before:#x}, all of it at "
                f"{start + scratch.nbytes:#x}."
            )
        before = int(ends.max())
