"""The generator against published numbers, and what makes it a pure function."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from headrace.kernels.cpu.philox_draws import words_around
from headrace.kernels.cpu.philox_state import DrawSeed, PhiloxState, words_of
from headrace.kernels.cpu.random import (
    fill_bernoulli,
    fill_beta,
    fill_index,
    fill_normal,
    fill_uniform,
    sample_uniforms,
)

# Of the authors' own test vectors: counter, key, words.
KNOWN_ANSWERS = [
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    (
        (0xFFFFFFFF,) * 4,
        (0xFFFFFFFF,) * 2,
        (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD),
    ),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xA4093822, 0x299F31D0),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
]


@pytest.mark.parametrize(("counter", "key", "words"), KNOWN_ANSWERS)
def test_known_answers(counter, key, words):
    low, high, key = (a | b << 32 for a, b in (counter[:2], counter[2:], key))
    assert tuple(words_of(PhiloxState(key, high, low), 1)) == words
    state = [np.uint64(v) for v in (key, high, low, 0)]
    assert tuple(int(w) for w in words_around(*state)) == words


FILLS = {
    "uniform32": (np.float32, lambda out, *where: fill_uniform(out, *where, -1.0, 3.0)),
    "uniform64": (np.float64, lambda out, *where: fill_uniform(out, *where, -1.0, 3.0)),
    "normal32": (np.float32, lambda out, *where: fill_normal(out, *where, 2.0, 3.0)),
    "normal64": (np.float64, lambda out, *where: fill_normal(out, *where, 2.0, 3.0)),
    "index": (np.int64, lambda out, *where: fill_index(out, *where, 1000)),
    "bernoulli": (np.uint8, lambda out, *where: fill_bernoulli(out, *where, 0.3)),
    "beta": (np.float64, lambda out, *where: fill_beta(out, *where, 0.5, 2.0)),
}


def of(seed):
    return DrawSeed.of_pipeline(seed, 8)


def drawn(name, samples, count, seed=7, iteration=3, first=0):
    dtype, fill = FILLS[name]
    out = np.empty((samples, count), dtype)
    fill(out, of(seed), iteration, first)
    return out


@pytest.mark.parametrize("name", FILLS)
def test_a_number_depends_on_its_place_only(name):
    # Longer than a tile of the kernels, and no multiple of anything.
    batch = drawn(name, 5, 2503)
    for sample in range(5):
        np.testing.assert_array_equal(drawn(name, 1, 2503, first=sample)[0], batch[sample])
    for count in (1, 2, 3, 7, 1024, 1025):
        np.testing.assert_array_equal(drawn(name, 5, count), batch[:, :count])


@pytest.mark.parametrize("name", FILLS)
def test_every_part_of_the_place_matters(name):
    first = drawn(name, 1, 64)
    for other in (
        drawn(name, 1, 64, seed=8),
        drawn(name, 1, 64, seed=7 + (1 << 32)),
        drawn(name, 1, 64, iteration=4),
        drawn(name, 1, 64, iteration=3 + (1 << 32)),
        drawn(name, 1, 64, first=1),
    ):
        assert (first != other).any()


def test_negative_and_large_seeds_are_64_bit_keys():
    np.testing.assert_array_equal(
        drawn("uniform32", 1, 8, seed=-1), drawn("uniform32", 1, 8, seed=(1 << 64) - 1)
    )


def test_uniforms_of_a_sample():
    numbers = sample_uniforms(of(5), 2, 1, 9)
    assert numbers.dtype == np.float64
    assert ((numbers >= 0) & (numbers < 1)).all()
    np.testing.assert_array_equal(sample_uniforms(of(5), 2, 1, 4), numbers[:4])
    words = np.array(words_of(PhiloxState(5, 2 * 8 + 65537), 5), np.uint64)
    packed = sample_uniforms(of(5), 2, 1, 9, packed=True)
    expected = (words[:18:2] | words[1:18:2] << np.uint64(32)) * 2.0**-64
    np.testing.assert_allclose(packed, expected, rtol=0, atol=1e-15)
    assert sample_uniforms(of(5), 2, 1, 0).shape == (0,)


DISTRIBUTIONS = {
    "uniform32": stats.uniform(-1, 4),
    "uniform64": stats.uniform(-1, 4),
    "normal32": stats.norm(2, 3),
    "normal64": stats.norm(2, 3),
    "beta": stats.beta(0.5, 2.0),
}


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_distribution(name):
    # The seed is fixed: this either always passes or never.
    values = drawn(name, 2, 20000).ravel()
    assert stats.kstest(values, DISTRIBUTIONS[name].cdf).pvalue > 0.01


@pytest.mark.parametrize(("alpha", "beta"), [(1, 1), (0.3, 0.2), (5, 2), (0.7, 30), (500, 900)])
def test_beta_distribution(alpha, beta):
    out = np.empty((1, 20000))
    fill_beta(out, of(11), 0, 0, alpha, beta)
    assert stats.kstest(out[0], stats.beta(alpha, beta).cdf).pvalue > 0.01


def test_neighbours_are_independent():
    for values in (drawn("normal32", 1, 40000)[0], drawn("normal32", 40000, 1)[:, 0]):
        for lag in (1, 2, 3, 4):
            assert abs(np.corrcoef(values[:-lag], values[lag:])[0, 1]) < 0.02


def test_indices_and_coins_are_fair():
    counts = np.bincount(drawn("index", 1, 100_000)[0], minlength=1000)
    assert len(counts) == 1000
    assert stats.chisquare(counts).pvalue > 0.01
    assert abs(drawn("bernoulli", 1, 100_000).mean() - 0.3) < 0.005


def test_certain_coins():
    out = np.empty((1, 1000), np.uint8)
    fill_bernoulli(out, of(1), 0, 0, 0.0)
    assert not out.any()
    fill_bernoulli(out, of(1), 0, 0, 1.0)
    assert out.all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_upper_end_is_never_drawn(dtype):
    # One float wide: half of the numbers would round up to the upper end.
    low = dtype(1.0)
    high = np.nextafter(low, dtype(2.0))
    out = np.empty((1, 1000), dtype)
    fill_uniform(out, of(1), 0, 0, low, high)
    assert (out == low).all()


def test_normals_reach_far_tails_and_are_finite():
    values = drawn("normal32", 1, 2_000_000)
    assert np.isfinite(values).all()
    assert values.max() > 2 + 3 * 4.8


@pytest.mark.parametrize("phase", range(4))
def test_tiles_of_a_state_have_the_words_of_their_places(phase):
    # The lower half of the counter overflows within the second tile.
    state = PhiloxState(0x123456789ABCDEF0, 5, (1 << 64) - 90_000, phase)
    seed, count = DrawSeed._of_state(state, 0), 2503
    first = state._replace(sequence=5 + 65537)  # the second sample's
    words = np.array(words_of(first, 257 * count // 4 + 2), np.uint64)[phase:]
    one, two = words[: 257 * count : 257], words[1 : 257 * count + 1 : 257]
    assert state.offset + 257 * 1500 // 4 > (1 << 64)
    single, double = np.empty((2, count), np.float32), np.empty((2, count))
    fill_uniform(single, seed, 0, 0, 0.0, 2.0)
    np.testing.assert_allclose(single[1], one * 2.0**-31, rtol=1e-6)
    fill_uniform(double, seed, 0, 0, 0.0, 2.0)
    np.testing.assert_allclose(double[1], (one | two << 32) * 2.0**-63, rtol=0, atol=1e-15)
    fill_normal(single, seed, 0, 0, 0.0, 1.0)
    radius, angle = np.sqrt(-2 * np.log(one * 2.0**-32)), two * 2.0**-32 * 2 * np.pi
    np.testing.assert_allclose(single[1], radius * np.cos(angle), rtol=1e-5, atol=1e-5)
    coins, indices = np.empty((2, count), np.uint8), np.empty((2, count), np.int64)
    fill_bernoulli(coins, seed, 0, 0, 0.25)
    np.testing.assert_array_equal(coins[1], one < 1 << 30)
    fill_index(indices, seed, 0, 0, 1 << 30)
    np.testing.assert_array_equal(indices[1], one >> 2)
    fill_index(indices, seed, 0, 0, 3 << 30)  # one word in four is rejected
    kept = (one * (3 << 30)) % (1 << 32) >= (1 << 32) % (3 << 30)
    assert 1500 < kept.sum() < 2200
    np.testing.assert_array_equal(indices[1][kept], ((one * (3 << 30)) >> 32)[kept])
