"""The numbers that a seed of seven words gives, against DALI's dynamic mode."""

from __future__ import annotations

import numpy as np
import nvidia.dali.experimental.dynamic as dali
import pytest

from headrace.experimental.dynamic.rng import RNG
from headrace.kernels.cpu import random as kernels

SAMPLES, ELEMENTS = 3, 211
SEEDS = [1, 1234, -5]


def of_dali(function, seed, **arguments):
    batch = function(batch_size=SAMPLES, shape=(ELEMENTS,), rng=dali.random.RNG(seed), **arguments)
    return np.stack([np.asarray(sample) for sample in batch])


@pytest.mark.sweep
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("ends", [(0, 1), (-1, 1), (-2.3, 5.7), (1e-3, 1e6)])
def test_uniform(seed, ends):
    out = np.empty((SAMPLES, ELEMENTS), np.float32)
    kernels.fill_uniform(out, RNG(seed).draw_seed(), 0, 0, *ends)
    np.testing.assert_array_equal(out, of_dali(dali.random.uniform, seed, range=ends))
    long = np.empty((SAMPLES, ELEMENTS))
    kernels.fill_uniform(long, RNG(seed).draw_seed(), 0, 0, *ends)
    np.testing.assert_allclose(
        long,
        of_dali(dali.random.uniform, seed, range=ends, dtype=dali.float64),
        rtol=1e-13,
        atol=1e-15,
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_normal(seed):
    out = np.empty((SAMPLES, ELEMENTS), np.float32)
    kernels.fill_normal(out, RNG(seed).draw_seed(), 0, 0, 1, 2.5)
    expected = of_dali(dali.random.normal, seed, mean=1, stddev=2.5)
    np.testing.assert_allclose(out, expected, rtol=1e-5, atol=1e-6)
    long = np.empty((SAMPLES, ELEMENTS))
    kernels.fill_normal(long, RNG(seed).draw_seed(), 0, 0, 1, 2.5)
    expected = of_dali(dali.random.normal, seed, mean=1, stddev=2.5, dtype=dali.float64)
    np.testing.assert_allclose(long, expected, rtol=1e-11, atol=1e-12)


@pytest.mark.sweep
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("probability", [0.0, 0.3, 0.5, 1.0])
def test_coin_flip(seed, probability):
    out = np.empty((SAMPLES, ELEMENTS), np.uint8)
    kernels.fill_bernoulli(out, RNG(seed).draw_seed(), 0, 0, probability)
    expected = of_dali(dali.random.coin_flip, seed, probability=probability)
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("count", [1, 10, 1_500_000_000])
def test_choice(seed, count):
    out = np.empty((SAMPLES, ELEMENTS), np.int64)
    kernels.fill_index(out, RNG(seed).draw_seed(), 0, 0, count)
    batch = dali.random.choice(
        np.int32(count), batch_size=SAMPLES, shape=(ELEMENTS,), rng=dali.random.RNG(seed)
    )
    np.testing.assert_array_equal(out, np.stack([np.asarray(sample) for sample in batch]))


@pytest.mark.sweep
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("alpha", "beta"), [(1, 1), (2, 3), (0.5, 2), (3, 0.3), (20, 1.5)])
def test_beta(seed, alpha, beta):
    out = np.empty((SAMPLES, ELEMENTS))
    kernels.fill_beta(out, RNG(seed).draw_seed(), 0, 0, alpha, beta)
    expected = of_dali(dali.random.beta, seed, alpha=alpha, beta=beta, dtype=dali.float64)
    np.testing.assert_allclose(out, expected, rtol=1e-10)
    kernels.fill_beta(out, RNG(seed).draw_seed(), 0, 0, alpha, beta, single=True)
    np.testing.assert_allclose(
        out, of_dali(dali.random.beta, seed, alpha=alpha, beta=beta), rtol=2e-4, atol=1e-6
    )


def test_states_are_written_alike():
    theirs, ours = dali.random.RNG(77), RNG(77)
    for step in (1, 7, 1000, 2**40):
        theirs.advance(step)
        ours.advance(step)
        assert str(theirs.get_state()) == ours.get_state()
        assert theirs() == ours()
