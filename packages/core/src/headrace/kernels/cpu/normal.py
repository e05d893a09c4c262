"""Normally distributed numbers out of uniform ones, compiled.

Logarithm, sine and cosine are polynomials, so that the numbers are the same wherever they are
computed.
"""

from __future__ import annotations

import math

import numpy as np

from headrace.kernels.compilation import njit

_EXPONENT_SHIFT = np.int64(52)
_MANTISSA = np.int64(0x000FFFFFFFFFFFFF)
_ONE_BITS = np.int64(0x3FF0000000000000)
_SQRT_2_MANTISSA = np.int64(0x0006A09E667F3BCD)
_LN2 = 0.6931471805599453
_HALF_PI = 1.5707963267948966


@njit(nogil=True, error_model="numpy")
def box_muller(radius: np.ndarray, angle: np.ndarray, bits: np.ndarray, pairs: int) -> None:
    """Turn uniforms into normals: `radius` from (0, 1], `angle` from [0, 1), `bits` scratch.

    Afterwards `radius` holds the normals, the cosine's of the transform of Box and Muller (1958).
    Logarithm, sine and cosine
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
        c = sine if (quadrant & 1) == 1 else cosine
        radius[i] = r * (-c if ((quadrant + 1) & 2) == 2 else c)
