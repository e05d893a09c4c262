"""Linear functions of the three channels of pixels."""

from __future__ import annotations

from itertools import product

import numpy as np

from headrace.kernels.cpu import color_loops, half
from headrace.kernels.cpu.cast import converter
from headrace.kernels.cpu.normalize_pixels import LIMITS
from headrace.tensors.rows import Rows


def takes_rows(source: np.dtype, out: np.dtype) -> bool:
    """Return True if `transform_rows` knows these types."""
    return source != np.float16 and out not in (np.int32, np.float16)


def transform_rows(data: Rows, numbers: np.ndarray, out: Rows) -> None:
    """`transform_pixels` for several samples of three channels; nothing is subtracted first.

    `numbers`: float32 ``(samples, 15)``.
    """
    source, target = data.dtype, out.dtype
    low, high = LIMITS.get(target, (0.0, 0.0))
    color_loops.transform_rows(source, target)(
        *(data.addresses, data.sizes, np.empty(0, source), numbers, low, high),
        *(out.addresses, np.empty(0, target)),
    )


def transform_pixels(
    source: np.ndarray, numbers: np.ndarray, out: np.ndarray, *, reverses: bool = False
) -> None:
    """Multiply every pixel with a matrix and add an offset.

    Products and sums are float32, each rounded, the columns of the matrix one after the other and
    then the offset, as in DALI. Integers are rounded, halves away from zero, and saturate.

    `source`: ``(..., 3)`` or ``(..., 1)``, which counts as three equal channels; uint8, int16,
    int32, float16 or float32, of any strides. `numbers`: fifteen float32: the matrix, row by row;
    three offsets; and what is subtracted from the channels of `source` first. `out`: contiguous;
    ``(..., 3)``, or ``(..., 1)`` for the first row of the matrix alone; any of these types.
    """
    if not source.size:
        return
    if source.dtype == np.float16:
        wide = np.empty(source.shape, np.float32)
        converter(source.dtype, wide.dtype)(source, wide)
        source = wide
    elif not source.flags.aligned:
        source = source.copy()
    if out.dtype == np.int32 or (out.dtype == np.float16 and not half.available()):
        # Vectors hold no int32: a float32 has too few digits for its limits.
        wide = np.empty(out.shape, np.float32)
        transform_pixels(source, numbers, wide, reverses=reverses)
        converter(wide.dtype, out.dtype)(wide, out)
        return
    target = out.view(np.uint16) if out.dtype == np.float16 else out
    loop = color_loops.transform(source.dtype, target.dtype)
    low, high = LIMITS.get(out.dtype, (0.0, 0.0))
    shifted = bool(numbers[12:].any())
    if source.flags.c_contiguous:
        channels, made = source.shape[-1], target.shape[-1]
        source, target = source.reshape(1, -1, channels), target.reshape(1, -1, made)
        loop(source, numbers, shifted, reverses, low, high, target)
        return
    for outer in product(*map(range, source.shape[:-3])):
        loop(source[outer], numbers, shifted, reverses, low, high, target[outer])
