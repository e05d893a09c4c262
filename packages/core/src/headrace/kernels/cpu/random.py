"""Random numbers as a pure function of (seed, iteration, sample, element), without Numba at import.

The generator is counter based, so that nothing depends on threads or on what was drawn before; see
`headrace.kernels.cpu.philox_draws` for the numbers, which are DALI's. This module holds what other
modules import at start-up; the compiled kernels are loaded on the first draw.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from headrace.kernels.cpu import philox_beta, philox_draws, small_draws
from headrace.kernels.cpu.philox_state import DrawSeed

_FEW = 4096


def _float32(value: float) -> float:
    """`value` in the precision in which DALI takes arguments, whatever type is drawn."""
    return float(np.float32(value))


def _place(seed: DrawSeed, iteration: int, first_sample: int) -> tuple[np.uint64, ...]:
    """Start of the sequence, as arguments of `philox_draws`' kernels; all of one type, for one
    compiled version.
    """
    state = seed.at(iteration)
    return (
        np.uint64(first_sample),
        np.uint64(state.key),
        np.uint64(state.sequence),
        np.uint64(state.offset),
        np.uint64(state.phase),
    )


def _kernels(out: np.ndarray) -> Any:
    """Those that do not let other threads have the interpreter meanwhile, for a few numbers."""
    return small_draws if len(out) > 1 and out.size <= _FEW else philox_draws


def sample_uniforms(
    seed: DrawSeed, iteration: int, sample: int, count: int, *, packed: bool = False
) -> np.ndarray:
    """`count` float64 numbers in [0, 1) with 53 random bits each.

    `packed` draws an element after the other, without a gap.
    """
    out = np.empty((1, count))
    stride = np.uint64(2) if packed else philox_draws.ELEMENT_STRIDE
    philox_draws.unit(out, stride, _place(seed, iteration, sample))
    return out[0]


def units_after(
    seed: DrawSeed, iteration: int, samples: np.ndarray, numbers: np.ndarray, count: int
) -> np.ndarray:
    """`count` numbers from 0 to 1 of each of `samples`, a word each: float64 ``(samples, count)``.

    They follow the first `numbers` words of the samples' streams.
    """
    out = np.empty((len(samples), count))
    philox_draws.units_after(out, samples, numbers, _place(seed, iteration, 0))
    return out


def fill_uniform(
    out: np.ndarray,
    seed: DrawSeed,
    iteration: int,
    first_sample: int,
    low: float,
    high: float,
    *,
    single: bool = False,
) -> None:
    """Fill a C-contiguous float32 or float64 array (samples, elements) uniformly from [low, high).

    Row ``r`` holds the numbers of sample ``first_sample + r``. `single` asks for numbers of the
    precision of float32, even if `out` is float64.
    """
    single = single or out.dtype == np.float32
    place = _place(seed, iteration, first_sample)
    _kernels(out).uniform(out, _float32(low), _float32(high), single, place)


def fill_normal(
    out: np.ndarray,
    seed: DrawSeed,
    iteration: int,
    first_sample: int,
    mean: float,
    stddev: float,
    *,
    single: bool = False,
) -> None:
    """Fill a C-contiguous float32 or float64 array (samples, elements) with a normal distribution.

    Row ``r`` holds the numbers of sample ``first_sample + r``. For `single` see `fill_uniform`.
    """
    single = single or out.dtype == np.float32
    place = _place(seed, iteration, first_sample)
    _kernels(out).normal(out, _float32(mean), _float32(stddev), single, place)


def fill_index(
    out: np.ndarray,
    seed: DrawSeed,
    iteration: int,
    first_sample: int,
    count: int,
    *,
    packed: bool = False,
) -> None:
    """Fill a C-contiguous int64 array (samples, elements) with indices, uniformly from [0, count).

    `count` is at most 2**63. For `packed`, where it is below 2**32, see `sample_uniforms`.
    """
    place = _place(seed, iteration, first_sample)
    _kernels(out).index(out, np.uint64(count), packed, place)


def fill_permutation(out: np.ndarray, seed: DrawSeed, iteration: int) -> None:
    """Fill a C-contiguous int64 array with a permutation of its places."""
    _kernels(out).permutation(out, _place(seed, iteration, 0))


def draw_below(
    bounds: np.ndarray, seed: DrawSeed, iteration: int, samples: Sequence[int]
) -> np.ndarray:
    """Integers of `samples` from 0 to each of `bounds` (samples, elements), not among them.

    The numbers are DALI's; those of an element follow those of the one before it.
    """
    out = np.empty(bounds.shape, np.int64)
    place = _place(seed, iteration, 0)
    limits = np.ascontiguousarray(bounds, np.int64)
    _kernels(out).below(out, limits, np.array(samples, np.int64), place)
    return out


def fill_bernoulli(
    out: np.ndarray, seed: DrawSeed, iteration: int, first_sample: int, probability: float
) -> None:
    """Fill a C-contiguous uint8 array (samples, elements): 1 with `probability`, else 0."""
    threshold = round(_float32(probability) * 2.0**32)
    _kernels(out).bernoulli(out, threshold, _place(seed, iteration, first_sample))


def fill_beta(
    out: np.ndarray,
    seed: DrawSeed,
    iteration: int,
    first_sample: int,
    alpha: float,
    beta: float,
    *,
    single: bool = False,
) -> None:
    """Fill a C-contiguous float32 or float64 array (samples, elements) with a beta distribution.

    For `single` see `fill_uniform`.
    """
    place = _place(seed, iteration, first_sample)
    philox_beta.beta(out, _float32(alpha), _float32(beta), single, place)
