"""Samples carried through several steps by one compiled loop, without the interpreter.

An instruction is a pair of C functions: one plans all samples, one carries a single sample through
a step. Both take the address of the instruction's words, numbers that are the same for all
samples; the address of a table of columns, int64 ``(columns, samples)``, in which samples are
described: where they are in memory, their extents, and whatever a plan finds out; the number of
samples; and the number of one of them. A plan returns something else than 0 where the samples are
not for compiled steps. They need nothing of the interpreter, and raise nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numba.core import types

from headrace.kernels.compilation import cfunc, njit
from headrace.kernels.cpu.locked_cache import locked_cache
from headrace.kernels.cpu.pointers import call_at, pointer

PLAN, CARRY, WORDS, PARTS = range(4)
"""Columns of a table of instructions: addresses of two functions, of which the first may be 0, and
of the words; and how many there are."""
SLOT_ADDRESS, SLOT_EXTENTS, SLOT_AXES, SLOT_BYTES, SLOT_PARTS = range(5)
"""Columns of a table of scratch memory: the column of the table of samples that tells where it is;
the first of those with its extents, and how many they are; the bytes of an element; and how many
there are."""
_ALIGNMENT = 64
_MOST = 1 << 20
"""More words than any instruction has, more columns than any table."""
_MOST_ELEMENTS = 1 << 28
"""More elements of a sample, or a longer axis, are not for scratch memory."""
_SIGNATURE = types.int32(types.uint64, types.uint64, types.int64, types.int64)


@locked_cache
def address_of(function: Callable[[int, int, int, int], int]) -> int:
    """The address of a function of instructions, compiled when it is first asked for."""
    compiled: Any = cfunc(_SIGNATURE, function)
    _KEPT.append(compiled)
    return int(compiled.address)


_KEPT: list[Any] = []
"""Functions whose addresses are known."""


@njit(nogil=True)
def words_at(address: int) -> np.ndarray:
    """The words of an instruction, as integers."""
    return numba.carray(pointer(address), _MOST, np.int64)


@njit(nogil=True)
def reals_at(address: int) -> np.ndarray:
    """The words of an instruction, as float64."""
    return numba.carray(pointer(address), _MOST, np.float64)


@njit(nogil=True)
def columns_at(address: int, count: int) -> np.ndarray:
    """The table of `count` samples."""
    return numba.carray(pointer(address), (_MOST, count), np.int64)


@njit(nogil=True)
def real_columns_at(address: int, count: int) -> np.ndarray:
    """The same as float64 numbers."""
    return numba.carray(pointer(address), (_MOST, count), np.float64)


@njit(nogil=True)
def floats(address: int, count: int) -> np.ndarray:
    """Float32 numbers at an address."""
    return numba.carray(pointer(np.uint64(address)), count, np.float32)


@njit(nogil=True)
def view_strides(words: np.ndarray, columns: np.ndarray, k: int) -> np.ndarray:
    """Bytes from one element of sample `k` to the next along each axis, int64 ``(ndim,)``, of the
    view that the first words tell: see `SampleColumns.view_words`.
    """
    extents, strides, ndim, size = words[1], words[2], words[3], words[4]
    found = np.empty(ndim, np.int64)
    for axis in range(ndim - 1, -1, -1):
        found[axis] = size if strides < 0 else columns[strides + axis, k]
        size *= columns[extents + axis, k]
    return found


@njit(nogil=True)
def volume(columns: np.ndarray, extents: int, axes: int, k: int) -> int:
    """Number of elements of sample `k`, whose extents begin in column `extents`."""
    found = 1
    for axis in range(axes):
        found *= columns[extents + axis, k]
    return found


def plan_alike(words_address: int, table: int, count: int, _: int) -> int:
    """The plan of an instruction whose outputs have the extents of its samples.

    Its first words are `SampleColumns.words` of these, and the columns of the output's address and
    of its first extent.
    """
    words, columns = words_at(words_address), columns_at(table, count)
    for axis in range(words[2]):
        for k in range(count):
            columns[words[4] + axis, k] = columns[words[1] + axis, k]
    return 0


def carry_nothing(_words_address: int, _table: int, _count: int, _k: int) -> int:
    """The rest of an instruction that has a plan alone."""
    return 0


@njit(nogil=True)
def plan_steps(instructions: np.ndarray, columns: np.ndarray, slots: np.ndarray) -> int:
    """Plan all samples; return the bytes of scratch memory, or -1 if a step does not take them.

    `instructions`: int64 ``(steps, PARTS)``. `slots`: int64 ``(slots, SLOT_PARTS)``: scratch memory
    for one sample; the table then has the place of each.
    """
    count = columns.shape[1]
    table = np.uint64(columns.ctypes.data)
    for i in range(len(instructions)):
        plan = instructions[i, PLAN]
        arguments = np.uint64(instructions[i, WORDS]), table, count, 0
        if plan != 0 and call_at(np.uint64(plan), arguments) != 0:
            return -1
    total = 0
    for s in range(len(slots)):
        most = 0
        for k in range(count):
            size = 1
            for axis in range(slots[s, SLOT_AXES]):
                extent = columns[slots[s, SLOT_EXTENTS] + axis, k]
                if extent > _MOST_ELEMENTS or extent * size > _MOST_ELEMENTS:
                    return -1
                size *= extent
            most = max(most, size)
            columns[slots[s, SLOT_ADDRESS], k] = total
        total += -(-most * slots[s, SLOT_BYTES] // _ALIGNMENT) * _ALIGNMENT
    return total


@njit(nogil=True)
def place_slots(columns: np.ndarray, slots: np.ndarray, address: int) -> None:
    """Have scratch memory begin at `address`."""
    for s in range(len(slots)):
        for k in range(columns.shape[1]):
            columns[slots[s, SLOT_ADDRESS], k] += address


@njit(nogil=True)
def carry_steps(instructions: np.ndarray, columns: np.ndarray, first: int, last: int) -> None:
    """Carry samples from number `first` to before `last` through all steps, one by one."""
    count = columns.shape[1]
    table = np.uint64(columns.ctypes.data)
    for k in range(first, last):
        for i in range(len(instructions)):
            arguments = np.uint64(instructions[i, WORDS]), table, count, k
            call_at(np.uint64(instructions[i, CARRY]), arguments)
