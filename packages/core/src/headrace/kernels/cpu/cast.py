"""Conversions of element types with DALI's saturation and rounding.

`converter` picks the fastest way for a pair of types, once; the function it returns converts one
array. NumPy does whatever it does right and fast, so that only conversions of floating point
numbers to integers and to or from float16 need (and import) Numba.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from headrace._forking import no_fork
from headrace.kernels.cpu.rows import as_rows

Converter = Callable[[np.ndarray, np.ndarray], None]
"""Fills its second argument, a contiguous array, with its first, a view of the same shape."""

_FLOAT16_MAX = 65504.0


@cache
def converter(source: np.dtype, target: np.dtype, *, rounded: bool = True) -> Converter:
    """The function that converts arrays of type `source` to type `target`.

    Not-a-numbers become what the x86 conversion instructions make of them: 0 in types of up to 16
    bits and in uint32, the most negative number in int32 and int64, 2**63 in uint64.
    """
    if source == target or source.kind == "b":
        return _copy
    if target.kind == "b":
        return _to_bool_from_float if source.kind == "f" else _to_bool
    if target.kind == "f":
        return _to_float(source, target, saturate=not rounded)
    if source.kind == "f":
        return _float_to_integer(source, target, rounded)
    return _integer_to_integer(source, target)


def _copy(source: np.ndarray, out: np.ndarray) -> None:
    np.copyto(out, source, casting="unsafe")


def _to_bool(source: np.ndarray, out: np.ndarray) -> None:
    np.not_equal(source, 0, out=out)


def _to_bool_from_float(source: np.ndarray, out: np.ndarray) -> None:
    # Rounded first: 0.4 is false. Not-a-numbers are true.
    np.less(np.abs(source), 0.5, out=out)
    np.logical_not(out, out=out)


def _to_float(source: np.dtype, target: np.dtype, *, saturate: bool) -> Converter:
    if target.itemsize == 2:
        return _to_half(saturate)
    if source == np.float16 and target == np.float32:
        return _from_half()
    if source.itemsize <= target.itemsize or source.kind != "f":
        return _copy

    limit = float(np.finfo(target).max)

    def shorten(source: np.ndarray, out: np.ndarray) -> None:
        if saturate:
            source = np.clip(source, -limit, limit)
        with np.errstate(over="ignore"):
            np.copyto(out, source, casting="unsafe")

    return shorten


def _half() -> Any:
    """The compiled loops for float16, or `None` where the processor lacks the instructions."""
    with no_fork:
        from headrace.kernels.cpu import half

    return half if half.available() else None


def _to_half(saturate: bool) -> Converter:
    half = _half()
    limit = _FLOAT16_MAX if saturate else float("inf")

    def with_numpy(source: np.ndarray, out: np.ndarray) -> None:
        # By way of float32, as DALI does: a tie of float32 is a tie of the result.
        with np.errstate(over="ignore"):
            single = source.astype(np.float32, copy=False)
            if saturate:
                single = np.clip(single, -limit, limit)
            np.copyto(out, single, casting="unsafe")

    def compiled(source: np.ndarray, out: np.ndarray) -> None:
        flat, rows, width, stride = as_rows(source)
        half.narrow_rows(flat, out.reshape(-1).view(np.uint16), rows, width, stride, limit)

    return with_numpy if half is None else compiled


def _from_half() -> Converter:
    half = _half()

    def compiled(source: np.ndarray, out: np.ndarray) -> None:
        flat, rows, width, stride = as_rows(source)
        half.widen_rows(flat.view(np.uint16), out.reshape(-1), rows, width, stride)

    return _copy if half is None else compiled


def _integer_to_integer(source: np.dtype, target: np.dtype) -> Converter:
    have, want = np.iinfo(source), np.iinfo(target)
    low, high = max(have.min, want.min), min(have.max, want.max)
    if low == have.min and high == have.max:
        return _copy
    limits = source.type(low), source.type(high)

    def saturate(source: np.ndarray, out: np.ndarray) -> None:
        np.copyto(out, np.clip(source, *limits), casting="unsafe")

    return saturate


def _float_to_integer(source: np.dtype, target: np.dtype, rounded: bool) -> Converter:
    with no_fork:
        from headrace.kernels.cpu import cast_loops

    if source.itemsize == 2:
        widen = converter(source, np.dtype(np.float32))
        inner = _float_to_integer(np.dtype(np.float32), target, rounded)

        def by_way_of_float32(source: np.ndarray, out: np.ndarray) -> None:
            single = np.empty(source.shape, np.float32)
            widen(source, single)
            inner(single, out)

        return by_way_of_float32

    small = source.itemsize == 4 and target.itemsize <= 2
    kind: type[np.floating[Any]] = np.float32 if small else np.float64
    half = np.nextafter(kind(0.5), kind(0)) if rounded else kind(0)
    info = np.iinfo(target)
    low, high = float(info.min), float(info.max)
    nan = {"u4": 0, "i4": info.min, "i8": info.min, "u8": 1 << 63}.get(target.str[1:], 0)
    numbers = np.array([half, low, high], kind)
    of_nan = np.array([nan], np.int32 if small else np.int64 if target.itemsize <= 4 else target)
    limits = np.array([info.min, info.max, nan], target)

    def convert(source: np.ndarray, out: np.ndarray) -> None:
        flat, rows, width, stride = as_rows(source)
        to = out.reshape(-1)
        if target.itemsize <= 4:
            cast_loops.to_integers(flat, to, rows, width, stride, numbers, of_nan)
        else:
            cast_loops.to_long_integers(
                flat, to, rows, width, stride, float(half), low, high, limits
            )

    return convert
