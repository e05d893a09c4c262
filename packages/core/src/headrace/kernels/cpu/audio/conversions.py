"""Conversions of samples of audio, for compiled code.

Floating point numbers are loudness between -1 and 1, and 1 is the largest integer of every type;
unsigned ones have silence in the middle. These are the rules of DALI. `as_stored` is what
libsndfile, and hence DALI, makes of a sample of a file that is neither mixed nor resampled:
integers keep their highest bits, and floating point numbers become integers as they are, without
scaling.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numba.extending import overload

from headrace.kernels.cpu.saturate import saturate


def normalized(value: Any) -> Any:
    """A sample of a file as a float32 in -1 to 1: integers by 2**(bits - 1). Compiled code only."""
    raise NotImplementedError("`normalized` can only be called from compiled code")


@overload(normalized)
def _normalized(value: Any) -> Any:
    if isinstance(value, types.Float):

        def single(value: Any) -> Any:
            return np.float32(value)

        return single
    middle = np.int32(128 if value == types.uint8 else 0)
    scale = np.float32(2.0 ** (1 - value.bitwidth))

    def from_integer(value: Any) -> Any:
        return np.float32(np.int32(value) - middle) * scale

    return from_integer


def as_stored(value: Any, like: np.ndarray) -> Any:
    """A sample of a file in the type of `like`, as libsndfile gives it. Compiled code only."""
    raise NotImplementedError("`as_stored` can only be called from compiled code")


@overload(as_stored)
def _as_stored(value: Any, like: Any) -> Any:
    if like.dtype == types.float32:

        def to_float(value: Any, like: Any) -> Any:
            return normalized(value)

        return to_float
    convert = getattr(np, like.dtype.name)
    if isinstance(value, types.Float):
        # What a processor's conversion to 32 bits makes of too large ones and of not-a-numbers.
        lowest = np.int32(-(2**31))

        def rounded(value: Any, like: Any) -> Any:
            whole = np.rint(value)
            return convert(np.int32(whole) if abs(whole) < 2147483648.0 else lowest)

        return rounded
    middle = np.int32(128 if value == types.uint8 else 0)
    up = np.int32(max(like.dtype.bitwidth - value.bitwidth, 0))
    down = np.int32(max(value.bitwidth - like.dtype.bitwidth, 0))

    def shifted(value: Any, like: Any) -> Any:
        return convert(((np.int32(value) - middle) << up) >> down)

    return shifted


def as_sample(value: np.float32, like: np.ndarray) -> Any:
    """A float32 whose largest number is 1 in the type of `like`, rounded and saturated.

    For compiled code only. Silence is 0 in signed types and 0.5 in unsigned ones.
    """
    raise NotImplementedError("`as_sample` can only be called from compiled code")


@overload(as_sample)
def _as_sample(value: Any, like: Any) -> Any:
    scale = np.float32(1 if isinstance(like.dtype, types.Float) else np.iinfo(like.dtype.name).max)

    def scaled(value: Any, like: Any) -> Any:
        return as_plain(value * scale, like)

    return scaled


def as_plain(value: np.float32, like: np.ndarray) -> Any:
    """A float32 in the type of `like`, neither scaled nor shifted. Compiled code only."""
    raise NotImplementedError("`as_plain` can only be called from compiled code")


@overload(as_plain)
def _as_plain(value: Any, like: Any) -> Any:
    if like.dtype == types.uint32:
        top, above = np.uint32(0xFFFFFFFF), np.float32(2.0**32)

        def to_uint32(value: Any, like: Any) -> Any:
            if not value > np.float32(0):
                return np.uint32(0)
            return np.uint32(np.int64(value + np.float32(0.49999997))) if value < above else top

        return to_uint32

    def saturated(value: Any, like: Any) -> Any:
        return saturate(value, like)

    return saturated
