"""From a signal to its spectrogram, mel spectrogram and decibels, sixteen frames at a time.

Sixteen frames are one below the other in memory, `step` apart; transposed, they are the lanes of
vectors, and whatever follows works on all of them at once. What lies between the steps of a block
of frames stays in the first levels of the cache.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from headrace.kernels.compilation import njit
from headrace.kernels.cpu.bands_loops import put_columns, put_rows, sum_bands
from headrace.kernels.cpu.decibel_loops import decibels
from headrace.kernels.cpu.fourier_loops import PAIR_BYTES, sizes_of_even, sizes_of_odd, transform
from headrace.kernels.cpu.pointers import pointer
from headrace.kernels.cpu.simd import (
    LANES,
    VECTOR_BYTES,
    load,
    multiply,
    spread,
    store,
    transpose,
)


@njit(nogil=True)
def _mirrored(signal: Any, at: int) -> np.float32:
    """Element `at` of a signal that goes on backwards, the outermost elements only once."""
    last = signal.size - 1
    at = abs(at)
    if at > 2 * last:
        at = at % (2 * last) if last else 0
    return signal[np.uintp(min(at, 2 * last - at))]


@njit(nogil=True)
def _gather(signal: Any, begin: int, length: int, reflect: bool, out: Any, first: int) -> None:
    """Copy elements `begin` and following of `signal`, which goes on beyond its ends."""
    size = signal.size
    low = min(max(-begin, 0), length)
    high = max(min(size - begin, length), low)
    out[first + low : first + high] = signal[begin + low : begin + high]
    if not reflect:
        out[first : first + low] = 0
        out[first + high : first + length] = 0
        return
    for i in range(low):
        out[np.uintp(first + i)] = _mirrored(signal, begin + i)
    for i in range(high, length):
        out[np.uintp(first + i)] = _mirrored(signal, begin + i)


@njit(nogil=True)
def _spectra(
    signal: Any,
    begin: int,
    step: int,
    lanes: int,
    reflect: bool,
    spectrum: Any,
    squared: bool,
    frames: Any,
    z: Any,
    odd: Any,
    out: Any,
    at: int,
    pitch: int,
) -> None:
    """Sizes of the spectra of up to sixteen frames, the first of which starts at `begin`."""
    window, length, size, steps, cosines, sines, places, joint_cosines, joint_sines = spectrum
    window_length = window.size
    whole = -(-window_length // LANES) * LANES
    is_odd = length % 2 == 1
    row_bytes = PAIR_BYTES if is_odd else VECTOR_BYTES
    inside = lanes == LANES and begin >= 0 and begin + 15 * step + whole <= signal.size
    apart = step
    if not inside and step <= whole:
        # All that the frames cover, at once.
        span = (lanes - 1) * step + whole
        _gather(signal, begin, span, reflect, frames, 0)
        frames[span : 15 * step + whole] = 0
    elif not inside:
        apart = whole
        for lane in range(lanes):
            _gather(signal, begin + lane * step, window_length, reflect, frames, lane * whole)
        for lane in range(lanes, LANES):
            frames[lane * whole : lane * whole + window_length] = 0
    for k in range(0, window_length, LANES):
        left = window_length - k
        to = k * row_bytes
        if inside:
            transpose(signal, (begin + k) * 4, step * 4, z, to, row_bytes, left, LANES, False)
        else:
            transpose(frames, k * 4, apart * 4, z, to, row_bytes, left, LANES, False)
    zero = spread(np.float32(0))
    for k in range(window_length):
        place = k * row_bytes
        store(z, place, multiply(load(z, place), spread(window[k])))
        if is_odd:
            store(z, place + VECTOR_BYTES, zero)
    for place in range(window_length * row_bytes, length * row_bytes, VECTOR_BYTES):
        store(z, place, zero)
    transform(z, size, steps, cosines, sines, odd)
    if is_odd:
        sizes_of_odd(z, length // 2 + 1, places, squared, out, at, pitch)
    else:
        sizes_of_even(z, size, places, joint_cosines, joint_sines, squared, out, at, pitch)


@njit(nogil=True)
def spectrogram(
    signal: Any,
    start: int,
    step: int,
    reflect: bool,
    spectrum: Any,
    squared: bool,
    bank: Any,
    scale: Any,
    time_first: bool,
    frame_count: int,
    out: Any,
    scratch: Any,
) -> None:
    """Fill `out` with the spectrogram of `signal`, or what filters and a logarithm make of it.

    `spectrum`: the window, float32, half of the weights of a frame's elements; the length of the
    transform, in which elements after the window are 0; and the tables of its
    `RealSpectrumPlan` and `TransformPlan`.
    `scratch`: float32 rows of 16 numbers: as many as `window` has weights, rounded up to 16, and
    for two of each element of the transform, each frequency, each band, 32 more.
    """
    (window, length, size), (bands, weights) = spectrum[:3], bank
    in_decibels, reference, smallest, factor = scale
    bins = length // 2 + 1
    band_count = bands.shape[0]
    rows_out = band_count if band_count else bins
    whole = -(-window.size // LANES) * LANES
    end = LANES * whole
    frames = scratch[:end]
    begin, end = end, end + 2 * LANES * max(size, 1)
    z = scratch[begin:end]
    begin, end = end, end + LANES * (bins + LANES)
    powers = scratch[begin:end]
    begin, end = end, end + LANES * (band_count + LANES)
    sums = scratch[begin:end]
    odd = scratch[end:]
    for first in range(0, frame_count, LANES):
        # The last frames are done together with some before them, again.
        first = max(min(first, frame_count - LANES), 0)
        lanes = min(LANES, frame_count)
        straight = not time_first and lanes == LANES
        to = first * 4
        pitch = frame_count * 4
        # Nothing is to be done to whole rows of frequencies one after another.
        direct = straight and band_count == 0
        spectra, at, apart = powers, 0, VECTOR_BYTES
        if direct:
            spectra, at, apart = out, to, pitch
        _spectra(
            signal, start + first * step, step, lanes, reflect, spectrum, squared, frames, z, odd,
            spectra, at, apart,
        )  # fmt: skip
        if direct:
            continue
        rows = powers
        if band_count:
            rows = sums
            at, apart = 0, VECTOR_BYTES
            if straight:
                rows, at, apart = out, to, pitch
            sum_bands(powers, 0, VECTOR_BYTES, bands, weights, rows, at, apart)
            if straight:
                continue
        if time_first:
            put_columns(rows, rows_out, out, to * rows_out, rows_out * 4, lanes)
        else:
            put_rows(rows, rows_out, out, to, pitch, lanes)
    if in_decibels:
        decibels(out, out, reference, smallest, factor)


@njit(nogil=True)
def spectrograms(
    addresses: Any,
    sizes: Any,
    start: int,
    step: int,
    reflect: bool,
    spectrum: Any,
    squared: bool,
    bank: Any,
    scale: Any,
    time_first: bool,
    frame_counts: Any,
    out: Any,
    begins: Any,
    scratch: Any,
) -> None:
    """Fill `out` with the spectrograms of several signals: see `spectrogram`.

    `addresses`, `sizes`: uint64 and int64 ``(signals,)``: where each is in memory, float32, and how
    long it is. `frame_counts`: int64 ``(signals,)``. `out`, `begins`: float32, flat, and the
    element of it with which each spectrogram begins.
    """
    rows = bank[0].shape[0] if bank[0].shape[0] else spectrum[1] // 2 + 1
    for k in range(len(addresses)):
        signal = numba.carray(pointer(addresses[k]), sizes[k], np.float32)
        spectrogram(
            signal, start, step, reflect, spectrum, squared, bank, scale, time_first,
            frame_counts[k], out[begins[k] : begins[k] + frame_counts[k] * rows], scratch,
        )  # fmt: skip
