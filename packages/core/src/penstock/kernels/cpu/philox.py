"""Philox4x32-10 and the distributions drawn from it, compiled.

Philox is from J. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (SC 2011): ten
rounds of multiplication and exclusive or turn a 128-bit counter and a 64-bit key into 128 random
bits. The key is an operator's seed; the counter is (block of elements, sample, iteration low,
iteration high). A block is the four 32-bit words one evaluation gives:

* 32-bit draws (float32, indices, coin flips): element ``e`` is word ``e % 4`` of block ``e // 4``;
* 53-bit draws (float64): element ``e`` is made of the words ``2 * (e % 2)`` (high) and
  ``2 * (e % 2) + 1`` (low) of block ``e // 2``;
* normals take their pair of uniforms from the same places: both elements of an even-odd pair
  come from one Box-Muller transform.

So every element can be computed alone, in any order, on any device. Apart from the conversion
to float32 everything is computed in float64 with additions, multiplications, divisions and square
roots only, which IEEE 754 defines to the last bit: a mirror of these functions that does not
contract multiply and add gives identical numbers.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

_M0 = np.uint64(0xD2511F53)
_M1 = np.uint64(0xCD9E8D57)
_W0 = np.uint32(0x9E3779B9)
_W1 = np.uint32(0xBB67AE85)
_HALF = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)
_ELEVEN = np.uint64(11)
_TWO_32 = 2.0**-32
_TWO_53 = 2.0**-53

_TILE_BLOCKS = 256
_TILE = 4 * _TILE_BLOCKS

_EXPONENT_SHIFT = np.int64(52)
_MANTISSA = np.int64(0x000FFFFFFFFFFFFF)
_ONE_BITS = np.int64(0x3FF0000000000000)
_SQRT_2_MANTISSA = np.int64(0x0006A09E667F3BCD)
_LN2 = 0.6931471805599453
_HALF_PI = 1.5707963267948966


@njit(nogil=True, cache=True)
def _fill_words(
    words: np.ndarray,
    blocks: int,
    first_block: int,
    sample: int,
    iteration_low: int,
    iteration_high: int,
    key0: int,
    key1: int,
) -> None:
    """The words of `blocks` blocks, four each, from block `first_block` on."""
    for b in range(blocks):
        c0 = np.uint32(first_block + b)
        c1 = np.uint32(sample)
        c2 = np.uint32(iteration_low)
        c3 = np.uint32(iteration_high)
        k0 = np.uint32(key0)
        k1 = np.uint32(key1)
        for _ in range(10):
            p0 = np.uint64(c0) * _M0
            p1 = np.uint64(c2) * _M1
            c0 = np.uint32(p1 >> _HALF) ^ c1 ^ k0
            c2 = np.uint32(p0 >> _HALF) ^ c3 ^ k1
            c1 = np.uint32(p1 & _LOW)
            c3 = np.uint32(p0 & _LOW)
            k0 = np.uint32(k0 + _W0)
            k1 = np.uint32(k1 + _W1)
        words[4 * b] = c0
        words[4 * b + 1] = c1
        words[4 * b + 2] = c2
        words[4 * b + 3] = c3


@njit(nogil=True, cache=True)
def uniforms(
    count: int,
    offset: int,
    sample: int,
    iteration_low: int,
    iteration_high: int,
    key0: int,
    key1: int,
) -> np.ndarray:
    """A new float64 array of `count` numbers in [0, 1), after the first `offset` of the stream."""
    first_block = offset // 2
    skip = offset - 2 * first_block
    blocks = (skip + count + 1) // 2
    words = np.empty(4 * blocks, np.uint32)
    _fill_words(words, blocks, first_block, sample, iteration_low, iteration_high, key0, key1)
    out = np.empty(count, np.float64)
    for i in range(count):
        j = 2 * (i + skip)
        bits = (np.uint64(words[j]) << _HALF) | np.uint64(words[j + 1])
        out[i] = np.float64(bits >> _ELEVEN) * _TWO_53
    return out


@njit(nogil=True, cache=True)
def uniform_float32(
    out: np.ndarray,
    low: float,
    high: float,
    first_sample: int,
    iteration_low: int,
    iteration_high: int,
    key0: int,
    key1: int,
) -> None:
    """Fill float32 (samples, elements) from [low, high)."""
    samples, count = out.shape
    words = np.empty(_TILE, np.uint32)
    low32 = np.float32(low)
    high32 = np.float32(high)
    last = np.nextafter(high32, low32)
    span = high - low
    for s in range(samples):
        for start in range(0, count, _TILE):
            n = min(_TILE, count - start)
            _fill_words(
                words,
                (n + 3) // 4,
                start // 4,
                first_sample + s,
                iteration_low,
                iteration_high,
                key0,
                key1,
            )
            for i in range(n):
                value = np.float32(low + np.float64(words[i]) * _TWO_32 * span)
                out[s, start + i] = last if value >= high32 else value


@njit(nogil=True, cache=True)
def uniform_float64(
    out: np.ndarray,
    low: float,
    high: float,
    first_sample: int,
    iteration_low: int,
    iteration_high: int,
    key0: int,
    key1: int,
) -> None:
    """Fill float64 (samples, elements) from [low, high)."""
    samples, count = out.shape
    words = np.empty(_TILE, np.uint32)
    last = np.nextafter(high, low)
    span = high - low
    for s in range(samples):
        for start in range(0, count, _TILE // 2):
            n = min(_TILE // 2, count - start)
            _fill_words(
                words,
                (n + 1) // 2,
                start // 2,
                first_sample + s,
                iteration_low,
                iteration_high,
                key0,
                key1,
            )
            for i in range(n):
                bits = (np.uint64(words[2 * i]) << _HALF) | np.uint64(words[2 * i + 1])
                value = low + np.float64(bits >> _ELEVEN) * _TWO_53 * span
                out[s, start + i] = last if value >= high else value


@njit(nogil=True, cache=True)
def index_int64(
    out: np.ndarray,
    choices: int,
    first_sample: int,
    iteration_low: int,
    iteration_high: int,
    key0: int,
    key1: int,
) -> None:
    """Fill int64 (samples, elements) from 0 ... choices - 1.

    The high word of word times `choices`: biased by less than choices / 2**32.
    """
    samples, count = out.shape
    words = np.empty(_TILE, np.uint32)
    for s in range(samples):
        for start in range(0, count, _TILE):
            n = min(_TILE, count - start)
            _fill_words(
                words,
                (n + 3) // 4,
                start // 4,
                first_sample + s,
                iteration_low,
                iteration_high,
                key0,
                key1,
            )
            for i in range(n):
                out[s, start + i] = np.int64((np.uint64(words[i]) * np.uint64(choices)) >> _HALF)


@njit(nogil=True, cache=True)
def bernoulli_uint8(
    out: np.ndarray,
    threshold: int,
    first_sample: int,
    iteration_low: int,
    iteration_high: int,
    key0: int,
    key1: int,
) -> None:
    """Fill uint8 (samples, elements) with 1 where the word is below `threshold`, else 0."""
    samples, count = out.shape
    words = np.empty(_TILE, np.uint32)
    for s in range(samples):
        for start in range(0, count, _TILE):
            n = min(_TILE, count - start)
            _fill_words(
                words,
                (n + 3) // 4,
                start // 4,
                first_sample + s,
                iteration_low,
                iteration_high,
                key0,
                key1,
            )
            for i in range(n):
                out[s, start + i] = np.uint8(1) if np.int64(words[i]) < threshold else np.uint8(0)


@njit(nogil=True, cache=True)
def _box_muller(radius: np.ndarray, angle: np.ndarray, bits: np.ndarray, pairs: int) -> None:
    """Turn uniforms into normals: `radius` from (0, 1], `angle` from [0, 1), `bits` scratch.

    Afterwards `radius` holds the cosine's, `angle` the sine's normals. Logarithm, sine and cosine
    are the polynomials of FDLIBM's kernels (Sun Microsystems, 1993: ``e_log.c``, ``k_sin.c``,
    ``k_cos.c``), accurate to about one unit in the last place, written without a branch so that
    the compiler makes vector instructions of them.
    """
    exponents = bits[:pairs]
    mantissas = bits[pairs : 2 * pairs]
    raw = radius.view(np.int64)
    fractions = mantissas.view(np.float64)
    for i in range(pairs):
        # radius = 2**exponent * fraction, with fraction between sqrt(1/2) and sqrt(2).
        mantissa = raw[i] & _MANTISSA
        carry = np.int64(1) if mantissa >= _SQRT_2_MANTISSA else np.int64(0)
        exponents[i] = (raw[i] >> _EXPONENT_SHIFT) - np.int64(1023) + carry
        mantissas[i] = mantissa | (_ONE_BITS - (carry << _EXPONENT_SHIFT))
    for i in range(pairs):
        f = fractions[i] - 1.0
        s = f / (2.0 + f)
        z = s * s
        w = z * z
        t1 = w * (0.3999999999940941908 + w * (0.2222219843214978396 + w * 0.1531383769920937332))
        t2 = z * (
            0.6666666666666735130
            + w * (0.2857142874366239149 + w * (0.1818357216161805012 + w * 0.1479819860511658591))
        )
        half_square = 0.5 * f * f
        logarithm = (
            np.float64(exponents[i]) * _LN2 - (half_square - s * (half_square + t1 + t2)) + f
        )
        r = math.sqrt(-2.0 * min(logarithm, 0.0))

        turns = angle[i] * 4.0
        quadrant = np.int64(turns + 0.5)
        x = (turns - np.float64(quadrant)) * _HALF_PI
        x2 = x * x
        sine = x + x * x2 * (
            -1.66666666666666324348e-01
            + x2
            * (
                8.33333333332248946124e-03
                + x2
                * (
                    -1.98412698298579493134e-04
                    + x2
                    * (
                        2.75573137070700676789e-06
                        + x2 * (-2.50507602534068634195e-08 + x2 * 1.58969099521155010221e-10)
                    )
                )
            )
        )
        cosine = (
            1.0
            - 0.5 * x2
            + x2
            * x2
            * (
                4.16666666666666019037e-02
                + x2
                * (
                    -1.38888888888741095749e-03
                    + x2
                    * (
                        2.48015872894767294178e-05
                        + x2
                        * (
                            -2.75573143513906633035e-07
                            + x2 * (2.08757232129817482790e-09 + x2 * -1.13596475577881948265e-11)
                        )
                    )
                )
            )
        )
        odd = (quadrant & 1) == 1
        c = sine if odd else cosine
        d = cosine if odd else sine
        c = -c if ((quadrant + 1) & 2) == 2 else c
        d = -d if (quadrant & 2) == 2 else d
        radius[i] = r * c
        angle[i] = r * d


@njit(nogil=True, cache=True)
def normal_float32(
    out: np.ndarray,
    mean: float,
    stddev: float,
    first_sample: int,
    iteration_low: int,
    iteration_high: int,
    key0: int,
    key1: int,
) -> None:
    """Fill float32 (samples, elements) with a normal distribution."""
    samples, count = out.shape
    words = np.empty(_TILE, np.uint32)
    radius = np.empty(_TILE // 2, np.float64)
    angle = np.empty(_TILE // 2, np.float64)
    bits = np.empty(_TILE, np.int64)
    for s in range(samples):
        for start in range(0, count, _TILE):
            n = min(_TILE, count - start)
            _fill_words(
                words,
                (n + 3) // 4,
                start // 4,
                first_sample + s,
                iteration_low,
                iteration_high,
                key0,
                key1,
            )
            pairs = (n + 1) // 2
            for i in range(pairs):
                radius[i] = (np.float64(words[2 * i]) + 1.0) * _TWO_32
                angle[i] = np.float64(words[2 * i + 1]) * _TWO_32
            _box_muller(radius, angle, bits, pairs)
            for i in range(n // 2):
                out[s, start + 2 * i] = np.float32(mean + stddev * radius[i])
                out[s, start + 2 * i + 1] = np.float32(mean + stddev * angle[i])
            if n % 2:
                out[s, start + n - 1] = np.float32(mean + stddev * radius[pairs - 1])


@njit(nogil=True, cache=True)
def normal_float64(
    out: np.ndarray,
    mean: float,
    stddev: float,
    first_sample: int,
    iteration_low: int,
    iteration_high: int,
    key0: int,
    key1: int,
) -> None:
    """Fill float64 (samples, elements) with a normal distribution."""
    samples, count = out.shape
    words = np.empty(_TILE, np.uint32)
    radius = np.empty(_TILE_BLOCKS, np.float64)
    angle = np.empty(_TILE_BLOCKS, np.float64)
    bits = np.empty(2 * _TILE_BLOCKS, np.int64)
    for s in range(samples):
        for start in range(0, count, _TILE // 2):
            n = min(_TILE // 2, count - start)
            pairs = (n + 1) // 2
            _fill_words(
                words,
                pairs,
                start // 2,
                first_sample + s,
                iteration_low,
                iteration_high,
                key0,
                key1,
            )
            for i in range(pairs):
                first = (np.uint64(words[4 * i]) << _HALF) | np.uint64(words[4 * i + 1])
                second = (np.uint64(words[4 * i + 2]) << _HALF) | np.uint64(words[4 * i + 3])
                radius[i] = (np.float64(first >> _ELEVEN) + 1.0) * _TWO_53
                angle[i] = np.float64(second >> _ELEVEN) * _TWO_53
            _box_muller(radius, angle, bits, pairs)
            for i in range(n // 2):
                out[s, start + 2 * i] = mean + stddev * radius[i]
                out[s, start + 2 * i + 1] = mean + stddev * angle[i]
            if n % 2:
                out[s, start + n - 1] = mean + stddev * radius[pairs - 1]
