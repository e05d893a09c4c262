"""Random numbers as a pure function of (seed, iteration, sample, element), without Numba at import.

The generator is counter based, so that nothing depends on threads, on the size of a batch or on
what was drawn before; see `headrace.kernels.cpu.philox` for the generator itself. This module
holds what other modules import at start-up; the compiled kernels are loaded on the first draw.

A seed may be a `DrawSeed`, which is the state of a generator. The numbers are then those of
`headrace.kernels.cpu.philox_draws`: DALI's.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from headrace.kernels.cpu import beta as beta_kernel
from headrace.kernels.cpu import normal, philox, philox_beta, philox_draws, small_draws
from headrace.kernels.cpu.philox_state import DrawSeed, words_of

_WORD = 0xFFFFFFFF
_FEW = 4096


def _float32(value: float) -> float:
    """`value` in the precision in which DALI takes arguments, whatever type is drawn."""
    return float(np.float32(value))


def key_of(seed: int, iteration: int) -> tuple[int, int, int, int]:
    """A `headrace.kernels.cpu.philox.Key`."""
    return iteration & _WORD, iteration >> 32, seed & _WORD, (seed >> 32) & _WORD


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


def _are_few(out: np.ndarray) -> bool:
    """True if the numbers are so few that the GIL is kept while they are drawn."""
    return len(out) > 1 and out.size <= _FEW


def sample_uniforms(
    seed: int, iteration: int, sample: int, count: int, offset: int = 0, *, packed: bool = False
) -> np.ndarray:
    """`count` float64 numbers in [0, 1) with 53 random bits each."""
    if type(seed) is DrawSeed:
        out = np.empty((1, offset + count), np.float64)
        stride = np.uint64(2) if packed else philox_draws.ELEMENT_STRIDE
        philox_draws.unit(out, stride, _place(seed, iteration, sample))
        return out[0, offset:]
    return philox.uniforms(  # type: ignore[no-any-return]
        count, offset, sample, key_of(seed, iteration)
    )


def uniforms_of(
    seed: int, iteration: int, samples: np.ndarray, count: int, offset: int = 0
) -> np.ndarray:
    """Uniform numbers of each of `samples`, int64, as `sample_uniforms` draws them: float64
    ``(samples, count)``.
    """
    if type(seed) is DrawSeed:
        found = [sample_uniforms(seed, iteration, k, count, offset) for k in samples.tolist()]
        return np.array(found).reshape(len(samples), count)
    out = np.empty((len(samples), count))
    philox.uniforms_of(out, offset, samples, key_of(seed, iteration))
    return out


def units_behind(
    seed: DrawSeed, iteration: int, samples: np.ndarray, numbers: np.ndarray, count: int
) -> np.ndarray:
    """`count` numbers from 0 to 1 of each of `samples`, a word each: float64 ``(samples, count)``.

    They follow the first `numbers` words of the samples' streams.
    """
    out = np.empty((len(samples), count))
    philox_draws.units_behind(out, samples, numbers, _place(seed, iteration, 0))
    return out


def fill_unit(out: np.ndarray, seed: int, iteration: int, first_sample: int) -> None:
    """Fill a C-contiguous float64 array (samples, elements) as `sample_uniforms` does a sample."""
    if type(seed) is DrawSeed:
        philox_draws.unit(out, philox_draws.ELEMENT_STRIDE, _place(seed, iteration, first_sample))
    else:
        fill_uniform(out, seed, iteration, first_sample, 0.0, 1.0)


def fill_uniform(
    out: np.ndarray,
    seed: int,
    iteration: int,
    first_sample: int,
    low: float,
    high: float,
    *,
    single: bool = False,
) -> None:
    """Fill a C-contiguous float32 or float64 array (samples, elements) uniformly from [low, high).

    Row ``r`` holds the numbers of sample ``first_sample + r``. `single` asks for numbers of the
    precision of float32 where a `DrawSeed` gives them, even if `out` is float64.
    """
    if type(seed) is DrawSeed:
        single = single or out.dtype == np.float32
        philox_draws.uniform(
            out, _float32(low), _float32(high), single, _place(seed, iteration, first_sample)
        )
        return
    kernels = small_draws if _are_few(out) else philox
    kernels.uniform(out, float(low), float(high), first_sample, key_of(seed, iteration))


def fill_normal(
    out: np.ndarray,
    seed: int,
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
    if type(seed) is DrawSeed:
        single = single or out.dtype == np.float32
        philox_draws.normal(
            out, _float32(mean), _float32(stddev), single, _place(seed, iteration, first_sample)
        )
        return
    kernels = small_draws if _are_few(out) else normal
    kernels.normal(out, float(mean), float(stddev), first_sample, key_of(seed, iteration))


def fill_index(
    out: np.ndarray,
    seed: int,
    iteration: int,
    first_sample: int,
    count: int,
    *,
    packed: bool = False,
) -> None:
    """Fill a C-contiguous int64 array (samples, elements) with indices, uniformly from [0, count).

    `count` is below 2**32. For `packed` see `sample_uniforms`.
    """
    if type(seed) is DrawSeed:
        philox_draws.index(out, np.uint64(count), packed, _place(seed, iteration, first_sample))
        return
    kernels = small_draws if _are_few(out) else philox
    kernels.index_int64(out, count, first_sample, key_of(seed, iteration))


def sample_words(
    seed: DrawSeed, iteration: int, sample: int, count: int, offset: int = 0
) -> np.ndarray:
    """The `count` words, as uint64, of a sample's stream after the first `offset` ones."""
    state = seed.at(iteration)
    stream = (state.sequence + sample * int(philox_draws.SAMPLE_STRIDE)) & (1 << 64) - 1
    state = state._replace(sequence=stream).advanced(offset)
    drawn = words_of(state._replace(phase=0), count // 4 + 2)
    return np.array(drawn[state.phase : state.phase + count], np.uint64)


def words_from(seed: DrawSeed, iteration: int) -> Callable[[int], np.ndarray]:
    """Make a function that gives the next words of the first sample of an iteration."""
    taken = 0

    def words(count: int) -> np.ndarray:
        nonlocal taken
        taken += count
        return sample_words(seed, iteration, 0, count, taken - count)

    return words


def draw_below(bounds: np.ndarray, seed: DrawSeed, iteration: int, first_sample: int) -> np.ndarray:
    """Integers from 0 to each of `bounds` (samples, elements), which are not among them.

    The numbers are DALI's; those of an element follow those of the one before it.
    """
    out = np.empty(bounds.shape, np.int64)
    limits = np.ascontiguousarray(bounds, np.uint64)
    philox_draws.below(out, limits, _place(seed, iteration, first_sample))
    return out


def fill_bernoulli(
    out: np.ndarray, seed: int, iteration: int, first_sample: int, probability: float
) -> None:
    """Fill a C-contiguous uint8 array (samples, elements): 1 with `probability`, else 0."""
    if type(seed) is DrawSeed:
        threshold = round(_float32(probability) * 2.0**32)
        philox_draws.bernoulli(out, threshold, _place(seed, iteration, first_sample))
        return
    kernels = small_draws if _are_few(out) else philox
    kernels.bernoulli_uint8(
        out, round(probability * 2.0**32), first_sample, key_of(seed, iteration)
    )


def fill_beta(
    out: np.ndarray,
    seed: int,
    iteration: int,
    first_sample: int,
    alpha: float,
    beta: float,
    *,
    single: bool = False,
) -> None:
    """Fill a C-contiguous float64 array (samples, elements) with a beta distribution.

    For `single` see `fill_uniform`.
    """
    if type(seed) is DrawSeed:
        place = _place(seed, iteration, first_sample)
        philox_beta.beta(out, _float32(alpha), _float32(beta), single, place)
        return
    beta_kernel.beta(out, float(alpha), float(beta), first_sample, key_of(seed, iteration))
