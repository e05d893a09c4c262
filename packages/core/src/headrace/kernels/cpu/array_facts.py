"""Addresses and shapes of many arrays at once, looked up in the arrays' own fields.

To ask 32 arrays takes 40 microseconds of the interpreter's time; to look, two.
"""

from __future__ import annotations

import sys
from functools import cache
from typing import Any

import numpy as np
from numba import types
from numba.extending import intrinsic

from headrace.kernels.compilation import njit
from headrace.tensors.rows import Rows

HEAD_BYTES = object.__basicsize__
"""Layout of a Python object's first fields. After them come, in NumPy's `PyArrayObject_fields`, the
address of the elements, the number of axes (an ``int``), the addresses of extents and strides, two
objects, and flags (an ``int``)."""
_AXES, _EXTENTS, _FLAGS = 8, 16, 48
_C_CONTIGUOUS = 1
_FEW = 4
"""Arrays up to which it is quicker to ask."""


@intrinsic  # type: ignore[misc]
def number_at(typing: Any, address: Any) -> Any:
    """The 64-bit number at an address."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = context.get_value_type(signature.return_type)
        return builder.load(builder.inttoptr(args[0], kind.as_pointer()))

    return types.uint64(types.uint64), generate


@njit()
def _describe(
    objects: np.ndarray, head_bytes: int, addresses: np.ndarray, shapes: np.ndarray
) -> bool:
    """Fill in where arrays are and their shapes; false if one has gaps or another rank."""
    ndim = shapes.shape[1]
    for k in range(len(objects)):
        fields = objects[k] + np.uint64(head_bytes)
        axes = number_at(fields + np.uint64(_AXES)) & np.uint64(0xFFFFFFFF)
        if axes != np.uint64(ndim):
            return False
        if number_at(fields + np.uint64(_FLAGS)) & np.uint64(_C_CONTIGUOUS) == 0:
            return False
        addresses[k] = number_at(fields)
        extents = number_at(fields + np.uint64(_EXTENTS))
        for axis in range(ndim):
            shapes[k, axis] = np.int64(number_at(extents + np.uint64(8 * axis)))
    return True


def rows_of(arrays: list[np.ndarray]) -> Rows:
    """The arrays as `Rows`, of which addresses and shapes are known where that is quick."""
    if len(arrays) > _FEW and set(map(type, arrays)) == {np.ndarray} and _are_known():
        found = _described(arrays)
        if found is not None:
            return Rows.of_arrays(arrays, *found)
    return Rows(arrays)


def _described(arrays: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray] | None:
    count = len(arrays)
    objects = np.fromiter(map(id, arrays), np.uint64, count)
    addresses = np.empty(count, np.uint64)
    shapes = np.empty((count, arrays[0].ndim), np.int64)
    return (addresses, shapes) if _describe(objects, HEAD_BYTES, addresses, shapes) else None


@cache
def _are_known() -> bool:
    """True if arrays are laid out in memory as is said above."""
    if sys.implementation.name != "cpython" or sys.byteorder != "little":
        return False
    some = np.arange(24, dtype=np.int16).reshape(2, 3, 4)
    found = _described([some, some[1:], some[:0]])
    if found is None or _described([some, some[:, 1:]]) or _described([some, some[0]]):
        return False
    addresses, shapes = found
    own = some.ctypes.data
    return addresses.tolist()[:2] == [own, own + 24] and shapes.tolist() == [
        [2, 3, 4],
        [1, 3, 4],
        [0, 3, 4],
    ]
