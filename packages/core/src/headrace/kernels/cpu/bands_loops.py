"""Weighted sums of neighbouring rows of sixteen numbers: filter banks and cosine transforms."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.kernels.compilation import njit
from headrace.kernels.cpu.simd import (
    LANES,
    VECTOR_BYTES,
    load,
    multiply_add,
    spread,
    store,
    store_first,
    transpose,
)


@njit(nogil=True)
def sum_bands(
    rows: Any,
    rows_at: int,
    rows_pitch: int,
    bands: Any,
    weights: Any,
    out: Any,
    out_at: int,
    pitch: int,
) -> None:
    """One row of sums for each band.

    `rows`, `rows_at`, `rows_pitch`: rows of 16 numbers: where the first is, and how far apart they
    are, in bytes. `bands`: int64 ``(bands, 3)``: the first row of each, the number of rows, and
    where its weights begin. `weights`: float32. `out`, `out_at`, `pitch`: where the first sums go,
    and how far apart sums of neighbouring bands are, in bytes.
    """
    n = 0
    zero = spread(np.float32(0))
    while n < bands.shape[0]:
        first, count, at = bands[n, 0], bands[n, 1], bands[n, 2]
        place = rows_at + first * rows_pitch
        to = out_at + n * pitch
        if (
            n + 3 < bands.shape[0]
            and count >= 8
            and bands[n + 1, 0] == first
            and bands[n + 2, 0] == first
            and bands[n + 3, 0] == first
            and bands[n + 1, 1] == count
            and bands[n + 2, 1] == count
            and bands[n + 3, 1] == count
        ):
            b, c, d = bands[n + 1, 2], bands[n + 2, 2], bands[n + 3, 2]
            sum0 = sum1 = sum2 = sum3 = zero
            for k in range(count):
                row = load(rows, place + k * rows_pitch)
                sum0 = multiply_add(row, spread(weights[at + k]), sum0)
                sum1 = multiply_add(row, spread(weights[b + k]), sum1)
                sum2 = multiply_add(row, spread(weights[c + k]), sum2)
                sum3 = multiply_add(row, spread(weights[d + k]), sum3)
            store(out, to, sum0)
            store(out, to + pitch, sum1)
            store(out, to + 2 * pitch, sum2)
            store(out, to + 3 * pitch, sum3)
            n += 4
            continue
        total = zero
        for k in range(count):
            row = load(rows, place + k * rows_pitch)
            total = multiply_add(row, spread(weights[at + k]), total)
        store(out, to, total)
        n += 1


@njit(nogil=True)
def put_rows(rows: Any, count: int, out: Any, at: int, pitch: int, lanes: int) -> None:
    """Store the first `lanes` numbers of `count` rows, `pitch` bytes apart, one row a row."""
    if lanes >= LANES:
        for k in range(count):
            store(out, at + k * pitch, load(rows, k * VECTOR_BYTES))
    else:
        for k in range(count):
            store_first(out, at + k * pitch, load(rows, k * VECTOR_BYTES), lanes)


@njit(nogil=True)
def put_columns(rows: Any, count: int, out: Any, at: int, pitch: int, lanes: int) -> None:
    """Store `count` rows as columns: lane n goes to `count` neighbours that begin at ``n * pitch``.

    `rows` must have memory for a multiple of 16 rows.
    """
    for k in range(0, count, LANES):
        place = k * VECTOR_BYTES
        transpose(rows, place, VECTOR_BYTES, out, at + 4 * k, pitch, lanes, count - k, False)


@njit(nogil=True)
def _take_scattered(data: Any, first: int, lanes: int, extent: int, inner: int, rows: Any) -> None:
    """Lanes `first` and following of all positions but the axis, any distance apart."""
    for lane in range(lanes):
        outer, rest = divmod(first + lane, inner)
        at = outer * extent * inner + rest
        for k in range(extent):
            rows[k * LANES + lane] = data[at + k * inner]
    for lane in range(lanes, LANES):
        for k in range(extent):
            rows[k * LANES + lane] = np.float32(0)


@njit(nogil=True)
def _put_scattered(rows: Any, first: int, lanes: int, extent: int, inner: int, out: Any) -> None:
    for lane in range(lanes):
        outer, rest = divmod(first + lane, inner)
        at = outer * extent * inner + rest
        for k in range(extent):
            out[at + k * inner] = rows[k * LANES + lane]


@njit(nogil=True)
def apply_bands(
    data: Any,
    outer: int,
    extent: int,
    inner: int,
    bands: Any,
    weights: Any,
    out: Any,
    rows: Any,
    sums: Any,
) -> None:
    """Weighted sums along the middle axis of ``(outer, extent, inner)``.

    `data`: float32, flat. `out`: float32, flat: ``(outer, bands, inner)``. `rows`, `sums`: scratch
    memory: `extent` and ``bands + 15`` rows of 16 numbers.
    """
    count = bands.shape[0]
    if inner >= LANES:
        for n in range(outer):
            for first in range(0, inner, LANES):
                # The last ones are done together with some before them, again.
                first = min(first, inner - LANES)
                at = (n * extent * inner + first) * 4
                to = (n * count * inner + first) * 4
                sum_bands(data, at, inner * 4, bands, weights, out, to, inner * 4)
        return
    for first in range(0, outer * inner, LANES):
        lanes = min(LANES, outer * inner - first)
        _take_scattered(data, first, lanes, extent, inner, rows)
        sum_bands(rows, 0, VECTOR_BYTES, bands, weights, sums, 0, VECTOR_BYTES)
        if inner == 1:
            put_columns(sums, count, out, first * count * 4, count * 4, lanes)
        else:
            _put_scattered(sums, first, lanes, count, inner, out)
