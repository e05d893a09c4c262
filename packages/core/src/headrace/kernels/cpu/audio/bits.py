"""Bits of big-endian streams, for compiled code."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit
from numba.core import types
from numba.extending import intrinsic

from headrace.kernels.cpu.simd import call_llvm

PADDING_BYTES = 16
"""Bytes that must follow a stream in memory: words are read whole."""


@intrinsic  # type: ignore[misc]
def _word(typing: Any, data: Any, at: Any) -> Any:
    """Eight bytes of `data` from number `at` on, the first one highest, unchecked."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        long = ir.IntType(64)
        memory = context.make_array(signature.args[0])(context, builder, args[0]).data
        place = builder.bitcast(builder.gep(memory, [args[1]]), long.as_pointer())
        return call_llvm(builder, "llvm.bswap.i64", long, [builder.load(place, align=1)])

    return types.uint64(data, types.int64), generate


@intrinsic  # type: ignore[misc]
def leading_zeros(typing: Any, value: Any) -> Any:
    """Zeros in front of the first one of a uint64; 64 if there is none."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return call_llvm(
            builder, "llvm.ctlz.i64", ir.IntType(64), [args[0], ir.Constant(ir.IntType(1), 0)]
        )

    return types.int64(types.uint64), generate


@njit(nogil=True)
def window(data: np.ndarray, bit: int) -> Any:
    """A uint64 that begins with bit number `bit`; at least its first 57 bits are right."""
    return _word(data, bit >> 3) << np.uint64(bit & 7)


@njit(nogil=True)
def unsigned(data: np.ndarray, bit: int, count: int) -> Any:
    """The number that `count` bits are, at most 57."""
    return np.int64((window(data, bit) >> np.uint64(1)) >> np.uint64(63 - count))


@njit(nogil=True)
def signed(data: np.ndarray, bit: int, count: int) -> Any:
    """The number that `count` bits are in two's complement, 1 to 57; 0 for no bits."""
    if count == 0:
        return np.int64(0)
    return np.int64(window(data, bit)) >> np.int64(64 - count)
