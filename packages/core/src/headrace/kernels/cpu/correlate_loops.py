"""The compiled loop of small filters of bytes, with OpenCV's arithmetic: its values in less time.

Products are added in the order of the weights, in float32, fused where the processor can; sums are
rounded, halves to even, and saturate. What is beyond 32-bit integers becomes 0, as there.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from headrace.kernels.compilation import njit
from headrace.kernels.cpu.simd import spread_scalar

_LANES = 64
"""Sums that are built side by side, in registers: enough to hide how long an addition takes."""
_MAGIC = 12582912.0
"""1.5 * 2**23: float32 numbers of this size are integers, whose lowest bits are the sum's."""


@njit(nogil=True)
def correlate_bytes(
    source: np.ndarray,
    pitch: int,
    rows: np.ndarray,
    columns: np.ndarray,
    anchor: int,
    channels: int,
    weights: np.ndarray,
    out: np.ndarray,
) -> None:
    """Fill `out` with weighted sums.

    `source`: flat uint8: rows of `pitch` elements. `rows`, `columns`: int64: which row (column)
    stands at each position from the first one that a weight of the first sum stands over to the
    last one of the last; -1 for zeros. `weights`: float32 ``(rows, columns)``.
    """
    width = out.shape[1]
    down, across = weights.shape
    flat = weights.reshape(-1)
    stride = len(columns) * channels
    inside = min(pitch // channels, len(columns) - anchor)
    # Only the rows that weights stand over are kept, row r in place r % down, as real numbers.
    padded = np.empty(down * stride, np.float32)
    starts = np.empty(down * across, np.int64)
    for r in range(len(rows)):
        line = padded[r % down * stride : (r % down + 1) * stride]
        if rows[r] < 0:
            line[:] = 0
        else:
            given = source[rows[r] * pitch : (rows[r] + 1) * pitch]
            middle = line[anchor * channels : (anchor + inside) * channels]
            for i in range(len(middle)):
                middle[i] = given[i]
            for j in range(len(columns) - inside):
                column = j if j < anchor else j + inside
                at = columns[column]
                for c in range(channels):
                    line[column * channels + c] = 0 if at < 0 else given[at * channels + c]
        y = r - down + 1
        if y < 0:
            continue
        for k in range(down * across):
            starts[k] = (y + k // across) % down * stride + k % across * channels
        if width >= _LANES:
            for i in range(0, width - _LANES + 1, _LANES):
                _weigh_lanes(padded, starts, flat, i, out[y])
            if width % _LANES:
                # Once more for some: sums depend on nothing but `padded`.
                _weigh_lanes(padded, starts, flat, width - _LANES, out[y])
            continue
        short, sums = np.zeros(len(starts) * _LANES, np.float32), np.empty(_LANES, np.uint8)
        for k in range(len(starts)):
            short[k * _LANES : k * _LANES + width] = padded[starts[k] : starts[k] + width]
        _weigh_lanes(short, np.arange(len(starts)) * _LANES, flat, 0, sums)
        out[y] = sums[:width]


@intrinsic  # type: ignore[misc]
def _weigh_lanes(context: Any, source: Any, starts: Any, weights: Any, first: Any, out: Any) -> Any:
    """Fill `_LANES` elements of `out` from ``first`` on: sums of runs that begin at `starts`."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> None:
        kinds = signature.args
        arrays = [context.make_array(kinds[k])(context, builder, args[k]) for k in (0, 1, 2, 4)]
        source, starts, weights, out = [array.data for array in arrays]
        first = args[3]
        count = builder.extract_value(arrays[2].shape, 0)
        octets = ir.VectorType(ir.IntType(8), _LANES)
        lanes = ir.VectorType(ir.FloatType(), _LANES)

        def constant(value: float) -> Any:
            return ir.Constant(lanes, [value] * _LANES)

        total = cgutils.alloca_once_value(builder, constant(0.0))
        with cgutils.for_range(builder, count) as loop:
            start = builder.load(builder.gep(starts, [loop.index]))
            at = builder.gep(source, [builder.add(start, first)])
            run = builder.load(builder.bitcast(at, lanes.as_pointer()), align=4)
            weight = builder.load(builder.gep(weights, [loop.index]))
            fused = ("contract",)
            product = builder.fmul(spread_scalar(builder, weight, _LANES), run, flags=fused)
            builder.store(builder.fadd(builder.load(total), product, flags=fused), total)
        sums = builder.load(total)
        is_integer = builder.fcmp_ordered("<", sums, constant(2.0**31))
        is_positive = builder.fcmp_ordered(">", sums, constant(0.0))
        sums = builder.select(builder.and_(is_integer, is_positive), sums, constant(0.0))
        sums = builder.select(
            builder.fcmp_ordered("<", sums, constant(255.0)), sums, constant(255.0)
        )
        shifted = builder.fadd(sums, constant(_MAGIC))
        whole = builder.bitcast(shifted, ir.VectorType(ir.IntType(32), _LANES))
        target = builder.bitcast(builder.gep(out, [first]), octets.as_pointer())
        builder.store(builder.trunc(whole, octets), target, align=1)
        return context.get_dummy_value()

    return types.void(source, starts, weights, first, out), generate
