"""Normally distributed numbers from Philox, compiled.

The two elements of an even-odd pair come from one Box-Muller transform (G. Box, M. Muller, 1958)
of the uniforms that `headrace.kernels.cpu.philox` has at their places. Logarithm, sine and cosine
are polynomials, so that the numbers are the same wherever they are computed.
"""

from __future__ import annotations

import math

import numpy as np

from headrace.kernels.compilation import njit
from headrace.kernels.cpu.philox import (
    ELEVEN,
    HALF,
    TILE,
    TWO_32,
    TWO_53,
    Key,
    fill_words,
)

_EXPONENT_SHIFT = np.int64(52)
_MANTISSA = np.int64(0x000FFFFFFFFFFFFF)
_ONE_BITS = np.int64(0x3FF0000000000000)
_SQRT_2_MANTISSA = np.int64(0x0006A09E667F3BCD)
_LN2 = 0.6931471805599453
_HALF_PI = 1.5707963267948966


@njit(nogil=True, error_model="numpy")
def box_muller(radius: np.ndarray, angle: np.ndarray, bits: np.ndarray, pairs: int) -> None:
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


@njit(nogil=True)
def normal(out: np.ndarray, mean: float, stddev: float, first_sample: int, key: Key) -> None:
    """Fill float32 or float64 (samples, elements) with a normal distribution."""
    samples, count = out.shape
    words = np.empty(TILE, np.uint32)
    radius = np.empty(TILE // 2, np.float64)
    angle = np.empty(TILE // 2, np.float64)
    bits = np.empty(TILE, np.int64)
    single = out.itemsize == 4
    each = 1 if single else 2
    tile = TILE // each
    for s in range(samples):
        for start in range(0, count, tile):
            n = min(tile, count - start)
            fill_words(words, (n * each + 3) // 4, start * each // 4, first_sample + s, key)
            pairs = (n + 1) // 2
            for i in range(pairs):
                if single:
                    radius[i] = (np.float64(words[2 * i]) + 1.0) * TWO_32
                    angle[i] = np.float64(words[2 * i + 1]) * TWO_32
                else:
                    first = (np.uint64(words[4 * i]) << HALF) | np.uint64(words[4 * i + 1])
                    second = (np.uint64(words[4 * i + 2]) << HALF) | np.uint64(words[4 * i + 3])
                    radius[i] = (np.float64(first >> ELEVEN) + 1.0) * TWO_53
                    angle[i] = np.float64(second >> ELEVEN) * TWO_53
            box_muller(radius, angle, bits, pairs)
            for i in range(n // 2):
                out[s, start + 2 * i] = mean + stddev * radius[i]
                out[s, start + 2 * i + 1] = mean + stddev * angle[i]
            if n % 2:
                out[s, start + n - 1] = mean + stddev * radius[pairs - 1]
