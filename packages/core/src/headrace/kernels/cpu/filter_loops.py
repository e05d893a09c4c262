"""Compiled loops of separable filters with symmetric windows."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from headrace.kernels.compilation import njit
from headrace.kernels.cpu.saturate import saturate
from headrace.kernels.cpu.simd import spread_scalar

_LANES = 64
"""Sums that are built side by side, in registers: enough to hide how long an addition takes."""


def filter_planes(
    source: np.ndarray,
    stride: int,
    planes: int,
    height: int,
    width: int,
    channels: int,
    windows: np.ndarray,
    reach: int,
    out: np.ndarray,
) -> None:
    """Filter planes along columns and rows of pixels.

    Beyond both ends rows and columns repeat backwards, the outermost only once, as often as it
    takes.

    `source`: contiguous uint8 or float32. Row ``r`` of all planes' rows begins at element ``r *
    stride``. `windows`: float32: the centre weight, then those at distances 1 to `reach`, down; and
    those across. `out`: contiguous uint8 or float32.
    """
    elements, to = source.reshape(-1), out.reshape(-1)
    row_window, column_window = windows[: reach + 1], windows[reach + 1 :]
    radius, pixels = column_window.size - 1, width // channels
    margin = radius * channels
    padded = np.empty(width + 2 * margin, np.float32)
    line = padded[margin : margin + width]
    above = np.empty(2 * reach + 1, np.int64)
    beside = np.arange(2 * radius + 1) * channels
    before, behind = np.empty(radius, np.int64), np.empty(radius, np.int64)
    for i in range(radius):
        before[i] = _mirrored(i - radius, pixels) * channels
        behind[i] = _mirrored(pixels + i, pixels) * channels
    for plane in range(planes):
        for y in range(height):
            for k in range(2 * reach + 1):
                above[k] = (plane * height + _mirrored(y + k - reach, height)) * stride
            _weigh(elements, above, row_window, line)
            for i in range(radius):
                for c in range(channels):
                    padded[i * channels + c] = line[before[i] + c]
                    padded[(radius + pixels + i) * channels + c] = line[behind[i] + c]
            begin = (plane * height + y) * width
            _weigh(padded, beside, column_window, to[begin : begin + width])


@njit(nogil=True, error_model="numpy")
def _mirrored(position: int, extent: int) -> int:
    """Index of the one of `extent` elements that stands at a position before, among or after
    them.
    """
    if 0 <= position < extent:
        return position
    if extent == 1:
        return 0
    period = 2 * (extent - 1)
    position = abs(position) % period
    return min(position, period - position)


@njit(nogil=True)
def _weigh(source: np.ndarray, starts: np.ndarray, window: np.ndarray, out: np.ndarray) -> None:
    """Fill `out` with weighted sums of the runs of `source` that begin at `starts`."""
    reach = window.size - 1
    if out.size >= _LANES:
        for i in range(0, out.size - _LANES + 1, _LANES):
            _weigh_lanes(source, starts, window, reach, i, out)
        if out.size % _LANES:
            # Once more for some: sums depend on nothing but `source`.
            _weigh_lanes(source, starts, window, reach, out.size - _LANES, out)
        return
    for i in range(out.size):
        total = window[0] * np.float32(source[starts[reach] + i])
        for k in range(1, reach + 1):
            pair = np.float32(source[starts[reach - k] + i]) + np.float32(
                source[starts[reach + k] + i]
            )
            total += window[k] * pair
        out[i] = saturate(total, out)


@intrinsic  # type: ignore[misc]
def _weigh_lanes(
    context: Any, source: Any, starts: Any, window: Any, reach: Any, first: Any, out: Any
) -> Any:
    """`_weigh` for elements ``first`` to ``first + _LANES - 1`` of `out`."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> None:
        kinds = signature.args
        data = [context.make_array(kinds[k])(context, builder, args[k]).data for k in (0, 1, 2, 5)]
        source, starts, window, out = data
        reach, first = args[3], args[4]
        long = ir.IntType(64)
        lanes = ir.VectorType(ir.FloatType(), _LANES)

        def run(position: Any) -> Any:
            start = builder.load(builder.gep(starts, [position]))
            at = builder.gep(source, [builder.add(start, first)])
            vector = ir.VectorType(at.type.pointee, _LANES)
            return builder.load(builder.bitcast(at, vector.as_pointer()), align=1)

        def single(values: Any) -> Any:
            return values if values.type == lanes else builder.uitofp(values, lanes)

        def weight(distance: Any) -> Any:
            return spread_scalar(builder, builder.load(builder.gep(window, [distance])), _LANES)

        total = cgutils.alloca_once(builder, lanes)
        builder.store(builder.fmul(weight(long(0)), single(run(reach))), total)
        with cgutils.for_range(builder, reach) as loop:
            distance = builder.add(loop.index, long(1))
            before = run(builder.sub(reach, distance))
            after = run(builder.add(reach, distance))
            if before.type == lanes:
                pair = builder.fadd(before, after)
            else:
                # Bytes are added as integers: one conversion instead of two.
                wide = ir.VectorType(ir.IntType(16), _LANES)
                both = builder.add(builder.zext(before, wide), builder.zext(after, wide))
                pair = builder.uitofp(both, lanes)
            fused = ("contract",)
            product = builder.fmul(weight(distance), pair, flags=fused)
            builder.store(builder.fadd(builder.load(total), product, flags=fused), total)
        result = builder.load(total)
        at = builder.gep(out, [first])
        if at.type.pointee != ir.FloatType():
            result = _rounded(builder, result)
        builder.store(result, builder.bitcast(at, result.type.as_pointer()), align=1)
        return context.get_dummy_value()

    return types.void(source, starts, window, reach, first, out), generate


def _rounded(builder: Any, values: Any) -> Any:
    """Floats as bytes, halves up, saturated."""

    def constant(value: float) -> Any:
        return ir.Constant(values.type, [value] * _LANES)

    low, high = constant(0.0), constant(255.0)
    values = builder.select(builder.fcmp_ordered(">", values, low), values, low)
    values = builder.select(builder.fcmp_ordered("<", values, high), values, high)
    half = float(np.nextafter(np.float32(0.5), np.float32(0)))
    whole = builder.fptosi(
        builder.fadd(values, constant(half)), ir.VectorType(ir.IntType(32), _LANES)
    )
    return builder.trunc(whole, ir.VectorType(ir.IntType(8), _LANES))
