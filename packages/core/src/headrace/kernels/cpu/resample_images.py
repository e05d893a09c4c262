"""Several images resampled in one call, decoded before that where they are JPEG files.

What `headrace.kernels.cpu.resample` and the decoder do for one image each, with the same bits, and
without the interpreter in between. One image at a time, its lock is held for some 60 microseconds
more for each, during which other threads of the process have to wait.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numba
import numpy as np

from headrace.kernels.compilation import njit
from headrace.kernels.cpu import half
from headrace.kernels.cpu.atomic import next_of
from headrace.kernels.cpu.decode.nvimagecodec import LEAST_COLUMNS, decode_region, prepared
from headrace.kernels.cpu.normalize_pixels import LIMITS, STORED_AS
from headrace.kernels.cpu.pointers import channels_last, pointer
from headrace.kernels.cpu.resample import Scratch
from headrace.kernels.cpu.resample_loops import SQUARES, resample
from headrace.kernels.cpu.resample_taps import (
    AXIS,
    Filter,
    filter_table,
    nearest,
    weigh,
    width_of,
)
from headrace.kernels.cpu.simd import LANES

IMAGE = np.dtype(
    [
        ("data", np.uint64),
        ("bytes", np.int64),
        ("height", np.int64),
        ("width", np.int64),
        ("top", np.int64),
        ("left", np.int64),
        ("must_be_complete", np.bool_),
        ("mirror", np.bool_),
        ("rows", AXIS),
        ("columns", AXIS),
        ("out", np.uint64),
    ],
    align=True,
)
"""An image, and what is wanted of it.

* ``data``, ``bytes``: address of a JPEG file, and its length; or, with a length of 0, of its uint8
  pixels, HWC, side by side;
* ``height``, ``width``: of all pixels, as stored;
* ``top``, ``left``: the pixel with which the axes begin;
* ``must_be_complete``: whether a file without an end is none, also where the end is not needed;
* ``rows``, ``columns``: which pixels are wanted, and what of;
* ``mirror``: whether columns are written from right to left;
* ``out``: address of the result.
"""

_FILTERS = (Filter.TRIANGULAR, Filter.CUBIC, Filter.LANCZOS, Filter.GAUSSIAN)
_NEAREST, _GAUSSIAN = int(Filter.NEAREST), int(Filter.GAUSSIAN)
_ALIGNMENT = 64


class Finish(NamedTuple):
    """Conversion of resampled numbers to the output."""

    planar: bool
    """True if they are CHW, and not HWC."""
    rounds: bool
    """True if resampled numbers are rounded to whole ones between `low` and `high`."""
    low: float
    high: float
    normalizes: bool
    """True if ``(number - mean) * factor`` follows, ..."""
    rounds_out: bool
    """... and then rounding to whole ones between `out_low` and `out_high`."""
    out_low: float
    out_high: float

    @classmethod
    def of(
        cls, dtype: np.dtype, rounds_to: np.dtype | None, *, normalizes: bool, planar: bool
    ) -> Finish:
        """The conversion to elements of type `dtype`."""
        low, high = (0.0, 0.0) if rounds_to is None else LIMITS[rounds_to]
        limits = LIMITS.get(dtype) if normalizes else None
        rounds, rounds_out = rounds_to is not None, limits is not None
        return cls(planar, rounds, low, high, normalizes, rounds_out, *(limits or (0.0, 0.0)))


@njit(nogil=True)
def _taps_of(axis: Any, antialias: bool, radii: tuple[Any, ...]) -> int:
    """Number of source pixels that contribute to an output pixel."""
    if axis.filter == _NEAREST:
        return 1
    radius = radii[axis.filter - 1]
    gaussian = axis.filter == _GAUSSIAN
    width = width_of(radius, gaussian, antialias, axis.start, axis.end, axis.out_size)
    return min(math.ceil(width), axis.in_size)


@njit(nogil=True)
def _most_needed(axis: Any, taps: int) -> int:
    """No fewer pixels of the source than the wanted ones are made of."""
    scale = abs(axis.end - axis.start) / axis.out_size
    return min(axis.in_size, int(scale * axis.length) + taps + 4)


@njit(nogil=True)
def _fill_taps(
    axis: Any,
    taps: int,
    stepwise: bool,
    mirror: bool,
    antialias: bool,
    tables: tuple[Any, ...],
    radii: tuple[Any, ...],
    first: np.ndarray,
    weights: np.ndarray,
) -> tuple[int, int]:
    """Compute `planned_taps`; returns the first source pixel that is needed, and the end."""
    begin, step, count = axis.begin, axis.step, axis.length
    if mirror:
        begin, step = begin + step * (count - 1), -step
    if axis.filter == _NEAREST:
        nearest(axis.in_size, axis.out_size, axis.start, axis.end, stepwise, begin, step, first)
        weights[:] = 1
    else:
        kind = axis.filter - 1
        weigh(
            tables[kind],
            radii[kind],
            axis.filter == _GAUSSIAN,
            antialias,
            axis.in_size,
            axis.out_size,
            axis.start,
            axis.end,
            begin,
            step,
            first,
            weights,
        )
    low, high = first[0], first[count - 1]
    return min(low, high), max(low, high) + taps


@njit(nogil=True)
def _aligned(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT


@njit(nogil=True)
def scratch_sizes(
    rows: Any,
    columns: Any,
    channels: int,
    decodes: bool,
    antialias: bool,
    radii: tuple[Any, ...],
) -> tuple[int, int, int, int, int, int]:
    """Scratch memory that an image takes, bytes: for the taps of rows (where they begin, weights)
    and of columns, for pixels that are decoded, and for what is resampled.
    """
    row_taps = _taps_of(rows, antialias, radii)
    column_taps = _taps_of(columns, antialias, radii)
    needed = _most_needed(columns, column_taps)
    pixels = 0
    if decodes:
        pixels = _most_needed(rows, row_taps) * max(needed, LEAST_COLUMNS) * channels
    width = -(-columns.length // LANES) * LANES
    floats = SQUARES + LANES * (needed * channels + LANES + (width + LANES) * channels)
    return (
        _aligned(8 * rows.length),
        _aligned(4 * rows.length * row_taps),
        _aligned(8 * columns.length),
        _aligned(4 * columns.length * column_taps),
        _aligned(pixels),
        4 * floats,
    )


@njit(nogil=True)
def _scratch_bytes(
    images: np.ndarray, channels: int, antialias: bool, radii: tuple[Any, ...]
) -> int:
    """Scratch memory that each of these images finds enough of."""
    most = 0
    for k in range(images.size):
        image = images[k]
        a, b, c, d, e, f = scratch_sizes(
            image.rows, image.columns, channels, image.bytes != 0, antialias, radii
        )
        most = max(most, a + b + c + d + e + f)
    return most


@njit(nogil=True)
def _ends(data: np.ndarray) -> bool:
    """True if a JPEG file ends with its end marker."""
    return data.size > 1 and data[data.size - 2] == 0xFF and data[data.size - 1] == 0xD9  # type: ignore[no-any-return]


@njit(nogil=True)
def taps_of_image(
    at: np.uint64,
    sizes: tuple[int, int, int, int, int, int],
    rows: Any,
    columns: Any,
    mirror: bool,
    antialias: bool,
    tables: tuple[Any, ...],
    radii: tuple[Any, ...],
) -> tuple[Any, ...]:
    """Taps of an image, in scratch memory at an address: where this is left, where rows begin and
    their weights, the same of columns; and first and last pixels of the source that they need.
    """
    height, width = rows.length, columns.length
    row_taps = _taps_of(rows, antialias, radii)
    column_taps = _taps_of(columns, antialias, radii)
    row_first = numba.carray(pointer(at), (height,), np.int64)
    at += np.uint64(sizes[0])
    row_weights = numba.carray(pointer(at), (height, row_taps), np.float32)
    at += np.uint64(sizes[1])
    column_first = numba.carray(pointer(at), (width,), np.int64)
    at += np.uint64(sizes[2])
    column_weights = numba.carray(pointer(at), (width, column_taps), np.float32)
    at += np.uint64(sizes[3])
    top, bottom = _fill_taps(
        rows, row_taps, True, False, antialias, tables, radii, row_first, row_weights
    )
    left, right = _fill_taps(
        columns,
        column_taps,
        False,
        mirror,
        antialias,
        tables,
        radii,
        column_first,
        column_weights,
    )
    edges = top, bottom, left, right
    return at, row_first, row_weights, column_first, column_weights, edges


@njit(nogil=True)
def write_image(
    address: np.uint64,
    shape: tuple[int, int, int],
    top: int,
    left: int,
    row_first: np.ndarray,
    row_weights: np.ndarray,
    column_first: np.ndarray,
    column_weights: np.ndarray,
    finish: Any,
    means: np.ndarray,
    factors: np.ndarray,
    target: np.uint64,
    like: np.ndarray,
    scratch: np.ndarray,
) -> None:
    """Resample the uint8 pixels at `address`, (H, W, C), to elements like those of `like`."""
    height, width, channels = row_first.size, column_first.size, shape[2]
    source = numba.carray(pointer(address), shape, np.uint8)
    if finish.planar:
        planes = numba.carray(pointer(target), (channels, height, width), like.dtype)
        out = channels_last(planes)
    else:
        out = numba.carray(pointer(target), (height, width, channels), like.dtype)[:, :, ::1]
    resample(
        source[:, :, ::1],
        top,
        left,
        row_first,
        row_weights,
        column_first,
        column_weights,
        finish.rounds,
        np.float32(finish.low),
        np.float32(finish.high),
        finish.normalizes,
        means,
        factors,
        finish.rounds_out,
        np.float32(finish.out_low),
        np.float32(finish.out_high),
        out,
        scratch,
    )


@njit(nogil=True)
def _resample_images(
    images: np.ndarray,
    channels: int,
    finish: Any,
    antialias: bool,
    tables: tuple[Any, ...],
    radii: tuple[Any, ...],
    calls: np.ndarray,
    handles: tuple[int, int],
    kinds: tuple[int, int, int],
    means: np.ndarray,
    factors: np.ndarray,
    taken: np.ndarray,
    scratch: np.ndarray,
    like: np.ndarray,
    good: np.ndarray,
) -> None:
    while True:
        k = next_of(taken)
        if k >= images.size:
            break
        image = images[k]
        rows, columns = image.rows, image.columns
        sizes = scratch_sizes(rows, columns, channels, image.bytes != 0, antialias, radii)
        e, f = sizes[4], sizes[5]
        at, row_first, row_weights, column_first, column_weights, edges = taps_of_image(
            np.uint64(scratch.ctypes.data),
            sizes,
            rows,
            columns,
            image.mirror,
            antialias,
            tables,
            radii,
        )
        top, bottom, left, right = edges
        if right - left > _most_needed(columns, column_weights.shape[1]):
            continue  # there is not enough scratch memory
        address = image.data
        shape = (image.height, image.width, channels)
        if image.bytes:
            data = numba.carray(pointer(address), (image.bytes,), np.uint8)
            whole = (0, 0, image.height, image.width)
            y0, x0 = image.top + top, image.left + left
            y1, x1 = image.top + bottom, image.left + right
            if x1 - x0 < min(LEAST_COLUMNS, image.width):
                x0 = max(0, min(x0, image.width - LEAST_COLUMNS))
                x1 = min(image.width, x0 + LEAST_COLUMNS)
            region = (y0, x0, y1, x1)
            if image.must_be_complete and region != whole and not _ends(data):
                continue
            shape = (y1 - y0, x1 - x0, channels)
            size = shape[0] * shape[1] * channels
            if size > e:
                continue
            decoded = numba.carray(pointer(at), (size,), np.uint8)
            address = at
            at += np.uint64(e)
            if not decode_region(calls, handles, data, whole, region, kinds, channels, decoded):
                continue
            top, left = y0 - image.top, x0 - image.left
        else:
            top, left = -image.top, -image.left
        write_image(
            address,
            shape,
            top,
            left,
            row_first,
            row_weights,
            column_first,
            column_weights,
            finish,
            means,
            factors,
            image.out,
            like,
            numba.carray(pointer(at), (f // 4,), np.float32),
        )
        good[k] = True


@cache
def filters() -> tuple[tuple[np.ndarray, ...], tuple[Any, ...]]:
    """Tables of the filters but the first, and their radii."""
    tables, radii = zip(*map(filter_table, _FILTERS), strict=True)
    return tables, radii


_ZERO, _U8 = np.zeros(1, np.float32), np.dtype(np.uint8)


def can_make(dtype: np.dtype) -> bool:
    """True if results of this type are written without an intermediate copy."""
    return dtype != np.float16 or half.available()


def resampling_loop(
    images: np.ndarray,
    channels: int,
    color: str,
    dtype: np.dtype,
    *,
    antialias: bool,
    fast_idct: bool = False,
    rounds_to: np.dtype | None = None,
    normalization: tuple[np.ndarray, np.ndarray] | None = None,
    planar: bool = False,
) -> tuple[Callable[[np.ndarray, Scratch], None], np.ndarray]:
    """A loop that resamples images of uint8, and which of them could be made, bool ``(images,)``.

    Each thread that takes part in the loop calls it with an array that counts the images that are
    taken, int64 ``(1,)``, and what to get scratch memory from.

    `images`: `IMAGE` ``(images,)``. `dtype`: type of the results: float32, uint8, int8, or float16
    where there is hardware for it. `planar`: true if these are CHW, and not HWC.
    """
    means, factors = (_ZERO, _ZERO) if normalization is None else normalization
    finish = Finish.of(dtype, rounds_to, normalizes=normalization is not None, planar=planar)
    tables, radii = filters()
    size = _scratch_bytes(images, channels, antialias, radii)
    good = np.zeros(images.size, np.bool_)
    like = np.empty(0, STORED_AS.get(dtype, dtype))

    def resample_part(taken: np.ndarray, scratch: Scratch) -> None:
        calls, handles, kinds = prepared(_U8, color, fast_idct)  # a decoder of the thread's own
        _resample_images(
            images,
            channels,
            finish,
            antialias,
            tables,
            radii,
            calls,
            handles,
            kinds,
            means,
            factors,
            taken,
            scratch((size,), _U8),
            like,
            good,
        )

    return resample_part, good
