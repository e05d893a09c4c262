"""Numbers of a beta distribution from Philox, compiled.

Beta needs rejection: how many uniforms an element takes is not known beforehand. Each element has
a counter of its own, whose high 16 bits count its draws (an iteration's number stays below 2**48).
"""

from __future__ import annotations

import math

import numpy as np

from headrace.kernels.compilation import njit
from headrace.kernels.cpu.philox import ELEVEN, HALF, TWO_53, Key, block

_DRAW_SHIFT = 16


@njit(nogil=True)
def _two_uniforms(element: int, draw: int, sample: int, key: Key) -> tuple[float, float]:
    """Two numbers in (0, 1)."""
    high = key[1] | (draw << _DRAW_SHIFT)
    w0, w1, w2, w3 = block(element, sample, key[0], high, key[2], key[3])
    u = np.float64(((np.uint64(w0) << HALF) | np.uint64(w1)) >> ELEVEN)
    v = np.float64(((np.uint64(w2) << HALF) | np.uint64(w3)) >> ELEVEN)
    return (u + 0.5) * TWO_53, (v + 0.5) * TWO_53


@njit(nogil=True)
def _log_gamma_variate(
    shape: float, element: int, draw: int, sample: int, key: Key
) -> tuple[float, int]:
    """Logarithm of a number of the gamma distribution, and the number of the next draw.

    G. Marsaglia, W. Tsang, "A simple method for generating gamma variables" (2000). A shape below
    one is drawn with one more and multiplied by ``u ** (1 / shape)``, which only its logarithm
    survives when the shape is small.
    """
    boost = 0.0
    if shape < 1.0:
        u, _ = _two_uniforms(element, draw, sample, key)
        draw += 1
        boost = math.log(u) / shape
        shape += 1.0
    d = shape - 1.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * d)
    while True:
        u, angle = _two_uniforms(element, draw, sample, key)
        w, _ = _two_uniforms(element, draw + 1, sample, key)
        draw += 2
        x = math.sqrt(-2.0 * math.log(u)) * math.cos(2.0 * math.pi * angle)
        t = 1.0 + c * x
        if t <= 0.0:
            continue
        v = t * t * t
        if math.log(w) < 0.5 * x * x + d - d * v + d * math.log(v):
            return math.log(d * v) + boost, draw


@njit(nogil=True)
def beta(out: np.ndarray, alpha: float, beta: float, first_sample: int, key: Key) -> None:
    """Fill float64 (samples, elements) with a beta distribution.

    The ratio ``x / (x + y)`` of gamma variates, from their logarithms.
    """
    samples, count = out.shape
    for s in range(samples):
        sample = first_sample + s
        for e in range(count):
            x, draw = _log_gamma_variate(alpha, e, 0, sample, key)
            y, _ = _log_gamma_variate(beta, e, draw, sample, key)
            out[s, e] = 1.0 / (1.0 + math.exp(y - x))
