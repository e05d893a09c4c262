"""Expressions of float32 numbers, worked out by instructions: see
`headrace.kernels.cpu.step_loops`.

Words: columns of the address and of the first extent of the output, and its axes; the column of
scratch memory; the number of inputs, and for each the columns of its address and of its first
extent, and its axes: 0, or those of the output. Then the number of constants, and these; the
number of operations, and for each what it is and its operands: numbers of inputs; those of
constants, from `CONSTANT` on; and those of earlier operations, from `RESULT` on.
"""

from __future__ import annotations

import numpy as np

from headrace.kernels.compilation import njit
from headrace.kernels.cpu.step_loops import columns_at, floats, reals_at, volume, words_at

OPERATIONS = {"add": 0, "sub": 1, "mul": 2, "div": 3}
CONSTANT, RESULT = 1000, 2000
TILE = 1024
"""Numbers that go through all operations together, in the first level of the cache."""


def plan(words_address: int, table: int, count: int, _: int) -> int:
    """Find the shapes of outputs; inputs of different shapes are refused."""
    words, columns = words_at(words_address), columns_at(table, count)
    axes = words[2]
    for k in range(count):
        like = -1
        for i in range(words[4]):
            extents, own = words[6 + 3 * i], words[7 + 3 * i]
            if own == 0:
                continue
            for axis in range(axes):
                extent = columns[extents + axis, k]
                if like >= 0 and columns[words[1] + axis, k] != extent:
                    return 1
                columns[words[1] + axis, k] = extent
            like = i
    return 0


@njit(nogil=True, error_model="numpy")
def _apply(operation: int, a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
    """One operation on as many numbers as `out` has; an operand may be a single one."""
    if a.size == 1 and out.size > 1:
        x = a[0]
        if operation == 0:
            for i in range(out.size):
                out[i] = x + b[i]
        elif operation == 1:
            for i in range(out.size):
                out[i] = x - b[i]
        elif operation == 2:
            for i in range(out.size):
                out[i] = x * b[i]
        else:
            for i in range(out.size):
                out[i] = x / b[i]
    elif b.size == 1 and out.size > 1:
        y = b[0]
        if operation == 0:
            for i in range(out.size):
                out[i] = a[i] + y
        elif operation == 1:
            for i in range(out.size):
                out[i] = a[i] - y
        elif operation == 2:
            for i in range(out.size):
                out[i] = a[i] * y
        else:
            for i in range(out.size):
                out[i] = a[i] / y
    elif operation == 0:
        for i in range(out.size):
            out[i] = a[i] + b[i]
    elif operation == 1:
        for i in range(out.size):
            out[i] = a[i] - b[i]
    elif operation == 2:
        for i in range(out.size):
            out[i] = a[i] * b[i]
    else:
        for i in range(out.size):
            out[i] = a[i] / b[i]


@njit(nogil=True)
def _operand(
    number: int,
    words: np.ndarray,
    constants: np.ndarray,
    results: np.ndarray,
    columns: np.ndarray,
    k: int,
    begin: int,
    size: int,
) -> np.ndarray:
    """Elements of an operand, from number `begin` on, or its only one."""
    if number >= RESULT:
        return results[(number - RESULT) * TILE : (number - RESULT) * TILE + size]
    if number >= CONSTANT:
        return constants[number - CONSTANT : number - CONSTANT + 1]
    address = columns[words[5 + 3 * number], k]
    if words[7 + 3 * number] == 0:
        return floats(address, 1)
    return floats(address + 4 * begin, size)


def carry(words_address: int, table: int, count: int, k: int) -> int:
    """Work out the expression for one sample, tile by tile."""
    words, reals = words_at(words_address), reals_at(words_address)
    columns = columns_at(table, count)
    at = 5 + 3 * words[4]
    constants = np.empty(max(words[at], 1), np.float32)
    for i in range(words[at]):
        constants[i] = np.float32(reals[at + 1 + i])
    at += 1 + words[at]
    operations = words[at]
    results = floats(columns[words[3], k], TILE * operations)
    total = volume(columns, words[1], words[2], k)
    for begin in range(0, total, TILE):
        size = min(TILE, total - begin)
        for i in range(operations):
            code = at + 1 + 3 * i
            a = _operand(words[code + 1], words, constants, results, columns, k, begin, size)
            b = _operand(words[code + 2], words, constants, results, columns, k, begin, size)
            if i == operations - 1:
                out = floats(columns[words[0], k] + 4 * begin, size)
            else:
                out = results[i * TILE : i * TILE + size]
            _apply(words[code], a, b, out)
    return 0
