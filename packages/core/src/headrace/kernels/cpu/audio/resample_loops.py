"""Compiled loops that resample audio."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from headrace.kernels.compilation import njit
from headrace.kernels.cpu.audio.conversions import as_plain, as_sample
from headrace.kernels.cpu.simd import call_llvm, spread_scalar

BLOCK = 256
"""Outputs whose places follow from the first one by addition in single precision, as in DALI."""
_LANES = 16


@njit(nogil=True)
def resample(
    source: np.ndarray,
    step: float,
    lobes: int,
    taps: int,
    weights: np.ndarray,
    steps: np.ndarray,
    scaled: bool,
    out: np.ndarray,
) -> None:
    """Fill `out` with samples at the places ``0, step, 2 * step, ...`` of `source`.

    `lobes`, `taps`, `weights`, `steps`: the window, flat, with the length of a row; see
    `sinc_window`.
    """
    frames, channels = source.shape
    lane = source.reshape(-1)
    if channels > 1:
        lane = np.empty(frames, np.float32)
    ends = np.empty(taps, np.float32)
    scale = np.float32(step)
    for c in range(channels):
        if channels > 1:
            for i in range(frames):
                lane[i] = source[i, c]
        for begin in range(0, len(out), BLOCK):
            block_place = begin * step
            block = math.floor(block_place)
            place = np.float32(block_place - block)
            for i in range(begin, min(begin + BLOCK, len(out))):
                whole = math.floor(place)
                fine = (place - np.float32(whole)) * np.float32(32)
                phase = np.int64(math.ceil(fine))
                fraction = np.float32(phase) - fine
                first = np.int64(block) + np.int64(whole) - lobes
                if first >= 0 and first + taps <= frames:
                    total = _weigh(lane, first, weights, steps, phase * taps, fraction, taps)
                else:
                    for k in range(taps):
                        at = first + k
                        ends[k] = lane[at] if 0 <= at < frames else np.float32(0)
                    total = _weigh(ends, 0, weights, steps, phase * taps, fraction, taps)
                out[i, c] = as_sample(total, out) if scaled else as_plain(total, out)
                place += scale


@intrinsic  # type: ignore[misc]
def _weigh(
    context: Any,
    values: Any,
    first: Any,
    weights: Any,
    steps: Any,
    row: Any,
    fraction: Any,
    taps: Any,
) -> Any:
    """The sum of ``values[first + k] * (weights[row + k] + fraction * steps[row + k])``.

    In sixteen sums side by side, whatever the processor has: the result is the same everywhere.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        long, floats = ir.IntType(64), ir.VectorType(ir.FloatType(), _LANES)
        data = [
            context.make_array(signature.args[k])(context, builder, args[k]).data for k in (0, 2, 3)
        ]
        _, first, _, _, row, fraction, taps = args

        def run(array: Any, at: Any) -> Any:
            place = builder.bitcast(builder.gep(array, [at]), floats.as_pointer())
            return builder.load(place, align=4)

        spread = spread_scalar(builder, fraction, _LANES)
        fma = f"llvm.fma.v{_LANES}f32"
        before = builder.block
        body, after = builder.append_basic_block("taps"), builder.append_basic_block("summed")
        builder.branch(body)
        builder.position_at_end(body)
        k = builder.phi(long)
        total = builder.phi(floats)
        k.add_incoming(long(0), before)
        total.add_incoming(ir.Constant(floats, [0.0] * _LANES), before)
        at = builder.add(row, k)
        weight = call_llvm(builder, fma, floats, [spread, run(data[2], at), run(data[1], at)])
        added = call_llvm(
            builder, fma, floats, [run(data[0], builder.add(first, k)), weight, total]
        )
        following = builder.add(k, long(_LANES))
        k.add_incoming(following, body)
        total.add_incoming(added, body)
        builder.cbranch(builder.icmp_signed("<", following, taps), body, after)
        builder.position_at_end(after)
        width = _LANES // 2
        while width:
            order = [j if j < width else 0 for j in range(_LANES)]
            upper = [j + width if j < width else 0 for j in range(_LANES)]
            kind = ir.VectorType(ir.IntType(32), _LANES)
            added = builder.fadd(
                builder.shuffle_vector(added, added, ir.Constant(kind, order)),
                builder.shuffle_vector(added, added, ir.Constant(kind, upper)),
            )
            width //= 2
        return builder.extract_element(added, ir.Constant(ir.IntType(32), 0))

    i = types.int64
    return types.float32(values, i, weights, steps, i, types.float32, i), generate
