"""Fourier transforms of sixteen signals side by side, one in each lane of a vector.

A signal's elements lie below one another, so that a transform of sixteen needs no shuffles and no
vectorisation of its own. It works in place and by decimation in frequency, with any factors:
Cooley and Tukey, *An algorithm for the machine calculation of complex Fourier series* (1965), in
the arrangement of Gentleman and Sande (1966). The result is in the order of the factors'
digits; readers look positions up in a table, which costs nothing, as neighbours are
vectors.

Buffers are float32 arrays of rows of 16 numbers: row ``2 * j`` is the real part of element j, the
next one the imaginary part.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.kernels.compilation import njit
from headrace.kernels.cpu.simd import (
    VECTOR_BYTES,
    add,
    load,
    multiply,
    multiply_add,
    spread,
    square_root,
    store,
    subtract,
)

PAIR_BYTES = 2 * VECTOR_BYTES


@njit(nogil=True)
def _store_turned(z: Any, at: int, real: Any, imaginary: Any, cosine: Any, sine: Any) -> None:
    """Store the product of ``real + i imaginary`` and ``cosine - i sine``."""
    store(z, at, multiply_add(imaginary, sine, multiply(real, cosine)))
    minus = subtract(spread(np.float32(0)), multiply(real, sine))
    store(z, at + VECTOR_BYTES, multiply_add(imaginary, cosine, minus))


@njit(nogil=True)
def _by_four(z: Any, size: int, length: int, cosines: Any, sines: Any, first: int) -> None:
    quarter = length // 4
    step = quarter * PAIR_BYTES
    for j in range(quarter):
        c1, s1 = spread(cosines[first + 3 * j]), spread(sines[first + 3 * j])
        c2, s2 = spread(cosines[first + 3 * j + 1]), spread(sines[first + 3 * j + 1])
        c3, s3 = spread(cosines[first + 3 * j + 2]), spread(sines[first + 3 * j + 2])
        for begin in range(j, size, length):
            p0 = begin * PAIR_BYTES
            p1 = p0 + step
            p2 = p1 + step
            p3 = p2 + step
            a, b = load(z, p0), load(z, p0 + VECTOR_BYTES)
            c, d = load(z, p1), load(z, p1 + VECTOR_BYTES)
            e, f = load(z, p2), load(z, p2 + VECTOR_BYTES)
            g, h = load(z, p3), load(z, p3 + VECTOR_BYTES)
            ae, af = add(a, e), subtract(a, e)
            be, bf = add(b, f), subtract(b, f)
            cg, ch = add(c, g), subtract(c, g)
            dh, dg = add(d, h), subtract(d, h)
            store(z, p0, add(ae, cg))
            store(z, p0 + VECTOR_BYTES, add(be, dh))
            _store_turned(z, p1, add(af, dg), subtract(bf, ch), c1, s1)
            _store_turned(z, p2, subtract(ae, cg), subtract(be, dh), c2, s2)
            _store_turned(z, p3, subtract(af, dg), add(bf, ch), c3, s3)


@njit(nogil=True)
def _by_two(z: Any, size: int, length: int, cosines: Any, sines: Any, first: int) -> None:
    half = length // 2
    step = half * PAIR_BYTES
    for j in range(half):
        cosine, sine = spread(cosines[first + j]), spread(sines[first + j])
        for begin in range(j, size, length):
            p = begin * PAIR_BYTES
            q = p + step
            a, b = load(z, p), load(z, p + VECTOR_BYTES)
            c, d = load(z, q), load(z, q + VECTOR_BYTES)
            store(z, p, add(a, c))
            store(z, p + VECTOR_BYTES, add(b, d))
            _store_turned(z, q, subtract(a, c), subtract(b, d), cosine, sine)


@njit(nogil=True)
def _by_odd(
    z: Any,
    size: int,
    length: int,
    factor: int,
    cosines: Any,
    sines: Any,
    first: int,
    roots: int,
    scratch: Any,
) -> None:
    """One step by an odd factor. Its roots of unity stand at `roots` in the tables.

    ``x[q] + x[factor - q]`` and their difference serve two outputs each: those of k and of
    ``factor - k``, which differ in the sign of the sines.
    """
    part = length // factor
    step = part * PAIR_BYTES
    half = factor // 2
    for j in range(part):
        table = first + j * (factor - 1)
        for begin in range(j, size, length):
            base = begin * PAIR_BYTES
            real, imaginary = load(z, base), load(z, base + VECTOR_BYTES)
            total_real, total_imaginary = real, imaginary
            for q in range(1, half + 1):
                low, high = base + q * step, base + (factor - q) * step
                a, b = load(z, low), load(z, low + VECTOR_BYTES)
                c, d = load(z, high), load(z, high + VECTOR_BYTES)
                at = (q - 1) * 2 * PAIR_BYTES
                ac, bd = add(a, c), add(b, d)
                store(scratch, at, ac)
                store(scratch, at + VECTOR_BYTES, bd)
                store(scratch, at + PAIR_BYTES, subtract(a, c))
                store(scratch, at + PAIR_BYTES + VECTOR_BYTES, subtract(b, d))
                total_real, total_imaginary = add(total_real, ac), add(total_imaginary, bd)
            store(z, base, total_real)
            store(z, base + VECTOR_BYTES, total_imaginary)
            for k in range(1, half + 1):
                even_real, even_imaginary = real, imaginary
                odd_real = odd_imaginary = spread(np.float32(0))
                root = 0
                for q in range(half):
                    root += k
                    if root >= factor:
                        root -= factor
                    cosine, sine = spread(cosines[roots + root]), spread(sines[roots + root])
                    at = q * 2 * PAIR_BYTES
                    even_real = multiply_add(load(scratch, at), cosine, even_real)
                    even_imaginary = multiply_add(
                        load(scratch, at + VECTOR_BYTES), cosine, even_imaginary
                    )
                    odd_real = multiply_add(load(scratch, at + PAIR_BYTES), sine, odd_real)
                    odd_imaginary = multiply_add(
                        load(scratch, at + PAIR_BYTES + VECTOR_BYTES), sine, odd_imaginary
                    )
                low, high = table + k - 1, table + factor - k - 1
                _store_turned(
                    z,
                    base + k * step,
                    add(even_real, odd_imaginary),
                    subtract(even_imaginary, odd_real),
                    spread(cosines[low]),
                    spread(sines[low]),
                )
                _store_turned(
                    z,
                    base + (factor - k) * step,
                    subtract(even_real, odd_imaginary),
                    add(even_imaginary, odd_real),
                    spread(cosines[high]),
                    spread(sines[high]),
                )


@njit(nogil=True)
def transform(z: Any, size: int, steps: Any, cosines: Any, sines: Any, scratch: Any) -> None:
    """Transform sixteen complex signals in place.

    `steps`: int64 ``(steps, 3)``: the factor of each step, where its twiddle factors begin in the
    tables, and where the roots of unity for an odd factor do. `cosines`, `sines`: float32 tables.
    """
    length = size
    for n in range(steps.shape[0]):
        factor = steps[n, 0]
        if factor == 4:
            _by_four(z, size, length, cosines, sines, steps[n, 1])
        elif factor == 2:
            _by_two(z, size, length, cosines, sines, steps[n, 1])
        else:
            _by_odd(z, size, length, factor, cosines, sines, steps[n, 1], steps[n, 2], scratch)
        length //= factor


@njit(nogil=True)
def _store_size(out: Any, at: int, real: Any, imaginary: Any, squared: bool) -> None:
    size = multiply_add(real, real, multiply(imaginary, imaginary))
    store(out, at, size if squared else square_root(size))


@njit(nogil=True)
def sizes_of_even(
    z: Any,
    half: int,
    places: Any,
    cosines: Any,
    sines: Any,
    squared: bool,
    out: Any,
    at: int,
    pitch: int,
) -> None:
    """Squared sizes, or sizes, of the spectrum of real signals of even length ``2 * half``.

    `places`: int64 ``(half,)``: where each frequency lies. `cosines`, `sines`: float32 ``(half,)``:
    of the angles ``pi * k / half``. `out`, `at`, `pitch`: where the sizes of the first of ``half +
    1`` frequencies go, and how far apart those of neighbours are, in bytes.
    """
    a, b = load(z, 0), load(z, VECTOR_BYTES)
    sum_, difference = add(a, b), subtract(a, b)
    zero = spread(np.float32(0))
    sum_, difference = add(sum_, sum_), add(difference, difference)
    _store_size(out, at, sum_, zero, squared)
    _store_size(out, at + half * pitch, difference, zero, squared)
    for k in range(1, half // 2 + 1):
        p, q = places[k] * PAIR_BYTES, places[half - k] * PAIR_BYTES
        a, b = load(z, p), load(z, p + VECTOR_BYTES)
        c, d = load(z, q), load(z, q + VECTOR_BYTES)
        # Of the even elements (a + c, b - d), and of the odd ones (b + d, c - a).
        even_real, even_imaginary = add(a, c), subtract(b, d)
        odd_real, odd_imaginary = add(b, d), subtract(c, a)
        cosine, sine = spread(cosines[k]), spread(sines[k])
        real = multiply_add(odd_imaginary, sine, multiply(odd_real, cosine))
        imaginary = subtract(multiply(odd_imaginary, cosine), multiply(odd_real, sine))
        _store_size(
            out, at + k * pitch, add(even_real, real), add(even_imaginary, imaginary), squared
        )
        _store_size(
            out,
            at + (half - k) * pitch,
            subtract(even_real, real),
            subtract(even_imaginary, imaginary),
            squared,
        )


@njit(nogil=True)
def sizes_of_odd(
    z: Any, count: int, places: Any, squared: bool, out: Any, at: int, pitch: int
) -> None:
    """The same of signals of odd length, whose halves are the real parts of those transformed."""
    for k in range(count):
        p = places[k] * PAIR_BYTES
        a, b = load(z, p), load(z, p + VECTOR_BYTES)
        _store_size(out, at + k * pitch, add(a, a), add(b, b), squared)
