"""Logarithms of sixteen numbers at a time, as decibels.

The logarithm is that of the exponent, plus a polynomial of the rest, which lies between the roots
of 1/2 and of 2: the arrangement and coefficients of `logf` in the Cephes library (Moshier, 1992).
Its error is below one in the last place of a float32, and the same operations in the same order
give the same bits on the GPU.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba.extending import intrinsic

from headrace.kernels.compilation import njit
from headrace.kernels.cpu.simd import (
    LANES,
    VECTOR_BYTES,
    add,
    larger,
    load,
    load_first,
    multiply,
    multiply_add,
    spread,
    store,
    store_first,
    subtract,
    vector,
)

_INTS = ir.VectorType(ir.IntType(32), LANES)
_FLOATS = ir.VectorType(ir.FloatType(), LANES)
_ROOT_OF_HALF_BITS = 0x3F3504F3


def _all(value: int) -> Any:
    return ir.Constant(_INTS, [value] * LANES)


@intrinsic  # type: ignore[misc]
def exponent(typing: Any, value: Any) -> Any:
    """Whole powers of two by which positive normal numbers are to be divided to lie near 1."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        bits = builder.bitcast(args[0], _INTS)
        above = builder.sub(bits, _all(_ROOT_OF_HALF_BITS))
        return builder.sitofp(builder.ashr(above, _all(23)), _FLOATS)

    return vector(vector), generate


@intrinsic  # type: ignore[misc]
def mantissa(typing: Any, value: Any) -> Any:
    """Mantissa of positive normal numbers, whose `exponent` is taken out."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        bits = builder.bitcast(args[0], _INTS)
        above = builder.sub(bits, _all(_ROOT_OF_HALF_BITS))
        rest = builder.and_(above, _all(0x007FFFFF))
        return builder.bitcast(builder.add(rest, _all(_ROOT_OF_HALF_BITS)), _FLOATS)

    return vector(vector), generate


@intrinsic  # type: ignore[misc]
def where_less(typing: Any, value: Any, limit: Any, then: Any, otherwise: Any) -> Any:
    """Lanes of `then` where `value` is less than `limit`, else of `otherwise`."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.select(builder.fcmp_ordered("<", args[0], args[1]), args[2], args[3])

    return vector(vector, vector, vector, vector), generate


@njit(nogil=True)
def logarithm(value: Any) -> Any:
    """Natural logarithm, lane by lane, of positive numbers, denormal ones and infinity included."""
    tiny = spread(np.float32(1.17549435e-38))
    zero = spread(np.float32(0))
    big = spread(np.float32(np.inf))
    lifted = multiply(value, spread(np.float32(8388608.0)))
    normal = where_less(value, tiny, lifted, value)
    power = exponent(normal)
    power = where_less(value, tiny, subtract(power, spread(np.float32(23))), power)
    x = subtract(mantissa(normal), spread(np.float32(1)))
    square = multiply(x, x)
    y = spread(np.float32(7.0376836292e-2))
    y = multiply_add(y, x, spread(np.float32(-1.1514610310e-1)))
    y = multiply_add(y, x, spread(np.float32(1.1676998740e-1)))
    y = multiply_add(y, x, spread(np.float32(-1.2420140846e-1)))
    y = multiply_add(y, x, spread(np.float32(1.4249322787e-1)))
    y = multiply_add(y, x, spread(np.float32(-1.6668057665e-1)))
    y = multiply_add(y, x, spread(np.float32(2.0000714765e-1)))
    y = multiply_add(y, x, spread(np.float32(-2.4999993993e-1)))
    y = multiply_add(y, x, spread(np.float32(3.3333331174e-1)))
    y = multiply(y, multiply(x, square))
    y = multiply_add(power, spread(np.float32(-2.12194440e-4)), y)
    y = multiply_add(square, spread(np.float32(-0.5)), y)
    y = add(x, y)
    y = multiply_add(power, spread(np.float32(0.693359375)), y)
    return where_less(value, big, y, add(big, zero))


@njit(nogil=True)
def decibels_of(value: Any, inverse: Any, smallest: Any, factor: Any) -> Any:
    """``factor * log(max(value * inverse, smallest))``; what is no number counts as `smallest`."""
    return multiply(logarithm(larger(multiply(value, inverse), smallest)), factor)


@njit(nogil=True)
def largest(data: Any, size: int) -> np.float32:
    """Largest of the first `size` numbers, but at least 0."""
    zero = spread(np.float32(0))
    a = b = zero
    whole = size - size % (2 * LANES)
    for at in range(0, whole * 4, 2 * VECTOR_BYTES):
        a = larger(load(data, at), a)
        b = larger(load(data, at + VECTOR_BYTES), b)
    for first in range(whole, size, LANES):
        a = larger(load_first(data, first * 4, min(LANES, size - first)), a)
    found = np.empty(LANES, np.float32)
    store(found, 0, larger(a, b))
    result = np.float32(0)
    for k in range(LANES):
        result = max(result, found[k])
    return result


@njit(nogil=True)
def decibels(
    data: Any, out: Any, reference: np.float32, smallest: np.float32, factor: np.float32
) -> None:
    """Decibels of all numbers.

    `data`, `out`: float32, flat; they may be the same memory.
    """
    size = data.size
    if reference == np.float32(0):
        reference = largest(data, size)
        if reference == np.float32(0):
            reference = np.float32(1)
    inverse, low, by = spread(np.float32(1) / reference), spread(smallest), spread(factor)
    whole = size - size % LANES
    for at in range(0, whole * 4, VECTOR_BYTES):
        store(out, at, decibels_of(load(data, at), inverse, low, by))
    if whole < size:
        left = size - whole
        value = load_first(data, whole * 4, left)
        store_first(out, whole * 4, decibels_of(value, inverse, low, by), left)
