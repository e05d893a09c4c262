"""Shuffling like the C++ standard library: against numbers of the standard and a plain rewrite."""

from __future__ import annotations

import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.operators.readers import standard_shuffle
from headrace.operators.readers.standard_shuffle import (
    MinimalStandard,
    _MersenneTwister64,
    seed_sequence,
    shuffle_32,
    shuffle_64,
)


def mersenne_words(bits, seed):
    if bits == 32:
        generator = np.random.RandomState(seed & 0xFFFFFFFF)
        while True:
            yield int(generator.randint(0, 1 << 32, dtype=np.uint32))
    generator = _MersenneTwister64(seed & (1 << 64) - 1)
    while True:
        yield int(generator.words(1)[0])


def plain_shuffle(size, seed, bits):
    """`std::shuffle`, one number at a time."""
    words = mersenne_words(bits, seed)
    modulus = 1 << bits

    def below(bound):
        while True:
            product = next(words) * bound
            if product % modulus >= modulus % bound:
                return product // modulus

    order = list(range(size))

    def swap(i, j):
        order[i], order[j] = order[j], order[i]

    if (modulus - 1) // max(1, size) < size:
        for i in range(1, size):
            swap(i, below(i + 1))
        return order
    i = 1
    if size % 2 == 0 and size:
        swap(1, below(2))
        i = 2
    while i < size:
        first, second = divmod(below((i + 1) * (i + 2)), i + 2)
        swap(i, first)
        swap(i + 1, second)
        i += 2
    return order


def test_fixed_permutation_of_dali():
    order = np.arange(10)
    shuffle_32(order, 524287)
    assert order.tolist() == [5, 9, 1, 6, 7, 2, 0, 4, 8, 3]


@pytest.mark.sweep
@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("size", [0, 1, 2, 3, 4, 5, 10, 255, 1000, 1001, 33000])
def test_shuffle_equals_plain_rewrite(bits, size):
    order = np.arange(size)
    (shuffle_32 if bits == 32 else shuffle_64)(order, size + 17)
    assert order.tolist() == plain_shuffle(size, size + 17, bits)


def test_shuffle_where_pairs_no_longer_fit():
    size = 65_600  # 32 bits hold the product of two positions up to 65 535 elements
    order = np.arange(size)
    shuffle_32(order, 3)
    assert order.tolist() == plain_shuffle(size, 3, 32)


def test_rejected_words_are_replaced():
    """With words that are rejected now and then, the vectorised draw equals the plain one."""
    for bits in (32, 64):
        rng = np.random.default_rng(bits)
        # Zeros and small words have small low halves, which are the rejected ones.
        stream = rng.integers(0, (1 << bits) - 1, 80_000, dtype=np.uint64)
        stream[rng.random(80_000) < 0.02] = 0
        source = io.BytesIO(stream.tobytes())

        def words(count, source=source):
            return np.frombuffer(source.read(8 * count), np.uint64)

        ranges = np.arange(3, 40_003, dtype=np.uint64)
        drawn = standard_shuffle._bounded(words, ranges, bits)
        plain, k = [], 0
        for bound in ranges.tolist():
            while True:
                product = int(stream[k]) * bound
                k += 1
                if product % (1 << bits) >= (1 << bits) % bound:
                    break
            plain.append(product >> bits)
        assert drawn.tolist() == plain


def test_numbers_that_the_standard_requires():
    # [rand.predef]: the 10000th consecutive number of a default-constructed generator.
    minimal = MinimalStandard(1)
    assert int(minimal._numbers(10_000)[-1]) == 1043618065
    assert int(_MersenneTwister64(5489).words(10_000)[-1]) == 9981545732273789042


def test_words_come_in_any_portions():
    whole = _MersenneTwister64(7).words(1000)
    generator = _MersenneTwister64(7)
    parts = np.concatenate([generator.words(n) for n in (1, 310, 0, 2, 400, 287)])
    assert np.array_equal(parts, whole)


def test_seed_sequence():
    # Printed by a C++ program: std::seed_seq{1, 2, 3, 4, 5}, 10 words.
    expected = [
        4204997637, 4246533866, 1856049002, 1129615051, 690460811,
        1075771511, 46783058, 3904109078, 1534123438, 1495905678,
    ]  # fmt: skip
    assert seed_sequence([1, 2, 3, 4, 5], 10) == expected


@given(st.integers(1, 2**31 - 2), st.lists(st.integers(1, 2**31 - 3), min_size=1, max_size=50))
def test_uniform_numbers_of_the_minimal_standard(value, ranges):
    generator = MinimalStandard(value)
    drawn = generator.below(np.array(ranges))
    for bound, number in zip(ranges, drawn.tolist(), strict=True):
        scaling = (2**31 - 3) // bound
        while True:
            value = value * 16807 % (2**31 - 1)
            if value - 1 < bound * scaling:
                break
        assert number == (value - 1) // scaling
    assert generator.value == value
