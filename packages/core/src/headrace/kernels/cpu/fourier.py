"""Tables for Fourier transforms of any length: factors, twiddle factors, the output's order."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from headrace.kernels.cpu.rows import read_only

_MOST_FACTOR = 64
"""Largest prime factor that a step may take; its work grows with its square."""


class TransformPlan(NamedTuple):
    """Plan for transforming sixteen signals of one length by `fourier_loops.transform`."""

    size: int
    steps: np.ndarray
    """int64 ``(steps, 3)``: factor, and where its twiddle factors and its roots begin."""
    cosines: np.ndarray
    sines: np.ndarray
    """float32, of all steps: of the angles by which values are turned clockwise."""
    places: np.ndarray
    """int64 ``(size,)``: where each frequency lies when all is done."""
    scratch_rows: int


class RealSpectrumPlan(NamedTuple):
    """Plan for the spectrum of real signals of one length."""

    length: int
    transform: TransformPlan
    """Of half the length where that is even."""
    cosines: np.ndarray
    sines: np.ndarray
    """float32: how the two halves are put together; of no use for odd lengths."""

    @property
    def is_even(self) -> bool:
        """True if even and odd elements are transformed as real and imaginary parts."""
        return self.length % 2 == 0


def factors_of(size: int) -> list[int] | None:
    """Steps for a transform of `size`; `None` if it has a large prime factor."""
    factors = []
    for factor in (4, 2, 3, 5):
        while size % factor == 0:
            factors.append(factor)
            size //= factor
    factor = 7
    while size > 1 and factor <= _MOST_FACTOR:
        if size % factor == 0:
            factors.append(factor)
            size //= factor
        else:
            factor += 2
    return factors if size == 1 else None


def _turns(numerators: np.ndarray, denominator: int) -> tuple[np.ndarray, np.ndarray]:
    angles = 2 * np.pi * (numerators % denominator) / denominator
    return np.cos(angles), np.sin(angles)


def _transform(size: int, factors: list[int]) -> TransformPlan:
    cosines: list[np.ndarray] = []
    sines: list[np.ndarray] = []
    steps = np.zeros((len(factors), 3), np.int64)
    at, length = 0, size

    def put(numerators: np.ndarray, denominator: int) -> int:
        nonlocal at
        cosine, sine = _turns(numerators.reshape(-1), denominator)
        cosines.append(cosine)
        sines.append(sine)
        at += cosine.size
        return at - cosine.size

    places = np.zeros(size, np.int64)
    rest = np.arange(size)
    for n, factor in enumerate(factors):
        part = length // factor
        twiddles = put(np.outer(np.arange(part), np.arange(1, factor)), length)
        roots = put(np.arange(factor), factor) if factor % 2 else 0
        steps[n] = factor, twiddles, roots
        places += rest % factor * part
        rest //= factor
        length = part
    largest = max((f for f in factors if f % 2), default=1)
    return TransformPlan(
        size,
        read_only(steps),
        _table(cosines),
        _table(sines),
        read_only(places),
        2 * largest,
    )


def _table(parts: list[np.ndarray]) -> np.ndarray:
    # Never without elements: compiled loops and the GPU want an address.
    return read_only(np.concatenate([*parts, np.zeros(1)]).astype(np.float32))


@lru_cache(maxsize=64)
def spectrum_of(length: int) -> RealSpectrumPlan | None:
    """Plan for real signals of `length`; `None` where that would take too many steps."""
    half, is_odd = divmod(length, 2)
    size = length if is_odd else half
    factors = factors_of(size)
    if factors is None:
        return None
    transform = _transform(size, factors)
    cosine, sine = _turns(np.arange(size), 1 if is_odd else length)
    return RealSpectrumPlan(length, transform, _table([cosine]), _table([sine]))
