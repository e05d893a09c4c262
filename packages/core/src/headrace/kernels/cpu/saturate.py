"""The conversion from float32 at the end of compiled loops: rounds and saturates as DALI does."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numba.extending import overload

_LARGEST_BELOW_HALF = float(np.nextafter(np.float32(0.5), np.float32(0)))
"""Added before fractions are dropped, it rounds halves up and leaves 0.49999997 at 0."""


def saturate(value: np.float32, like: np.ndarray) -> Any:
    """`value` in the element type of `like`: halves away from zero, limits kept.

    For compiled code only. Not-a-numbers become 0, and in int32 the most negative number, which
    is what the processor's own conversion makes of them.
    """
    raise NotImplementedError("`saturate` can only be called from compiled code")


@overload(saturate)
def _saturate(value: Any, like: Any) -> Any:
    if isinstance(like.dtype, types.Float):
        return _unchanged
    element = like.dtype.name
    if element == "int32":
        return _to_int32
    info = np.iinfo(element)
    if info.bits > 16:
        raise TypeError(f"`saturate` has no conversion to {element}")
    convert, half = getattr(np, element), np.float32(_LARGEST_BELOW_HALF)
    low, high = np.float32(info.min), np.float32(info.max)
    if info.min == 0:

        def to_unsigned(value: Any, like: Any) -> Any:
            # The first comparison is false for a not-a-number.
            value = value if value > low else low
            value = value if value < high else high
            return convert(np.int32(value + half))

        return to_unsigned

    def to_signed(value: Any, like: Any) -> Any:
        limited = value if value > low else low
        limited = limited if limited < high else high
        limited = limited if value == value else np.float32(0)
        return convert(np.int32(limited + np.copysign(half, limited)))

    return to_signed


def _unchanged(value: Any, like: Any) -> Any:
    return value


def _to_int32(value: Any, like: Any) -> Any:
    # 2147483520 is the largest float32 that fits; anything above it saturates.
    limited = value if value > np.float32(-2147483648.0) else np.float32(-2147483648.0)
    limited = limited if limited < np.float32(2147483520.0) else np.float32(2147483520.0)
    whole = np.int32(limited + np.copysign(np.float32(0.49999997), limited))
    return whole if not value > np.float32(2147483520.0) else np.int32(2147483647)
