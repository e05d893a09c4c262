"""Random permutations equal, number by number, to those of the GNU C++ standard library.

DALI shuffles with ``std::shuffle`` and draws from ``std::uniform_int_distribution``. The C++
standard fixes the generators but not these two, so the rules here are those of libstdc++ (GCC 11
and later), written down from their published description and checked against DALI's orders:

* `std::uniform_int_distribution` on a generator of full 32- or 64-bit words is Lemire's
  multiplication method ("Fast random integer generation in an interval", ACM TOMACS 29(1), 2019);
  on any other generator it divides and rejects.
* `std::shuffle` swaps element ``i`` with one of the elements up to ``i``, for rising ``i``, and
  where one word is enough for two swaps it takes both positions from one number.

Orders are int64. Everything is computed in blocks with NumPy but for the swaps themselves, which
depend on each other and are compiled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from headrace.kernels.cpu import sample_orders

_WORD_32 = (1 << 32) - 1
_WORD_64 = (1 << 64) - 1
_LARGEST_BLOCK = 1 << 14

_Words = Callable[[int], np.ndarray]


def shuffle_32(order: np.ndarray, seed: int) -> None:
    """Shuffle `order` in place like ``std::shuffle`` with ``std::mt19937(seed)``."""
    generator = np.random.RandomState(seed & _WORD_32)

    def words(count: int) -> np.ndarray:
        return generator.randint(0, 1 << 32, size=count, dtype=np.uint32).astype(np.uint64)

    _shuffle(order, words, 32)


def shuffle_64(order: np.ndarray, seed: int) -> None:
    """Shuffle `order` in place like ``std::shuffle`` with ``std::mt19937_64(seed)``."""
    _shuffle(order, _MersenneTwister64(seed & _WORD_64).words, 64)


def _shuffle(order: np.ndarray, words: _Words, bits: int) -> None:
    size = len(order)
    if size < 2:
        return
    largest = (1 << bits) - 1
    if largest // size < size:
        ranges = np.arange(2, size + 1, dtype=np.uint64)
        partners = _bounded(words, ranges, bits)
    else:
        # Two partners from one number; a lone first swap makes the rest even.
        even = size % 2 == 0
        first = np.arange(2 + even, size, 2, dtype=np.uint64)  # elements up to the first of a pair
        second = first + np.uint64(1)
        ranges = np.concatenate((np.full(int(even), 2, np.uint64), first * second))
        drawn = _bounded(words, ranges, bits)
        partners = np.empty(size - 1, np.uint64)
        if even:
            partners[0] = drawn[0]
        pairs = drawn[int(even) :]
        partners[int(even) :: 2] = pairs // second
        partners[int(even) + 1 :: 2] = pairs % second
    sample_orders.swap_in_turn(order, 1, partners.astype(np.int64))


def _bounded(words: _Words, ranges: np.ndarray, bits: int) -> np.ndarray:
    """One number below each of `ranges`, drawn in turn; a rejected word is replaced by the next."""
    if bits == 32 and len(ranges) < 1 << 15:
        # Short, and in pairs the ranges come near to 2**32: up to every second word is rejected.
        return _bounded_32_one_by_one(words, ranges)
    scaled = _scaled_32 if bits == 32 else _scaled_64
    result = np.empty(len(ranges), np.uint64)
    done = 0
    block = 256
    pending = np.empty(0, np.uint64)
    while done < len(ranges):
        wanted = min(block, len(ranges) - done)
        if len(pending) < wanted:
            pending = np.concatenate((pending, words(wanted - len(pending))))
        bound = ranges[done : done + wanted]
        high, low = scaled(pending[:wanted], bound)
        # A rejection is rare, and it moves every later number by one word.
        suspects = np.flatnonzero(low < bound)
        rejected = next((k for k in suspects.tolist() if _is_rejected(low, bound, k, bits)), None)
        good = wanted if rejected is None else rejected
        result[done : done + good] = high[:good]
        done += good
        if rejected is None:
            pending = pending[good:]
            block = min(2 * block, _LARGEST_BLOCK)
        else:
            pending = pending[good + 1 :]
            block = max(block // 2, 256)
    return result


def _is_rejected(low: np.ndarray, bound: np.ndarray, k: int, bits: int) -> bool:
    return int(low[k]) < (1 << bits) % int(bound[k])


def _scaled_32(words: np.ndarray, ranges: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    product = words * ranges
    return product >> np.uint64(32), product & np.uint64(_WORD_32)


def _scaled_64(words: np.ndarray, ranges: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Both halves of the 128-bit products."""
    half, mask = np.uint64(32), np.uint64(_WORD_32)
    word_high, word_low = words >> half, words & mask
    range_high, range_low = ranges >> half, ranges & mask
    middle = word_high * range_low + ((word_low * range_low) >> half)
    carry = word_low * range_high + (middle & mask)
    high = word_high * range_high + (middle >> half) + (carry >> half)
    return high, words * ranges


def _bounded_32_one_by_one(words: _Words, ranges: np.ndarray) -> np.ndarray:
    result = []
    pending: Iterator[int] = iter(())
    for bound in ranges.tolist():
        threshold = (1 << 32) % bound
        while True:
            word = next(pending, None)
            if word is None:
                pending = iter(words(1024).tolist())
                continue
            product = word * bound
            if product & _WORD_32 >= threshold:
                break
        result.append(product >> 32)
    return np.array(result, np.uint64)


class _MersenneTwister64:
    """``std::mt19937_64``, 312 words at a time."""

    _SIZE, _MIDDLE = 312, 156

    def __init__(self, seed: int) -> None:
        state = [seed]
        for i in range(1, self._SIZE):
            previous = state[-1]
            state.append((6364136223846793005 * (previous ^ (previous >> 62)) + i) & _WORD_64)
        self._state = np.array(state, np.uint64)
        self._left = np.empty(0, np.uint64)

    def words(self, count: int) -> np.ndarray:
        """The next `count` words."""
        parts = [self._left]
        have = len(self._left)
        while have < count:
            parts.append(self._block())
            have += self._SIZE
        every = np.concatenate(parts)
        self._left = every[count:]
        return every[:count]

    def _block(self) -> np.ndarray:
        state, middle = self._state, self._MIDDLE
        # Each word is made of itself, its right neighbour and the word half a turn ahead. The
        # second half reads the new first half, and the last word the new first word.
        self._twist(slice(0, middle), state[1 : middle + 1], state[middle:])
        self._twist(slice(middle, self._SIZE - 1), state[middle + 1 :], state[: middle - 1])
        self._twist(slice(self._SIZE - 1, None), state[:1], state[middle - 1 : middle])
        y = state ^ ((state >> np.uint64(29)) & np.uint64(0x5555555555555555))
        y ^= (y << np.uint64(17)) & np.uint64(0x71D67FFFEDA60000)
        y ^= (y << np.uint64(37)) & np.uint64(0xFFF7EEE000000000)
        y ^= y >> np.uint64(43)
        return y

    def _twist(self, part: slice, neighbours: np.ndarray, ahead: np.ndarray) -> None:
        high, low = np.uint64(0xFFFFFFFF80000000), np.uint64(0x7FFFFFFF)
        y = (self._state[part] & high) | (neighbours & low)
        odd = (y & np.uint64(1)) * np.uint64(0xB5026F5AA96619E9)
        self._state[part] = ahead ^ (y >> np.uint64(1)) ^ odd


class MinimalStandard:
    """``std::minstd_rand0`` with ``std::uniform_int_distribution<int>``.

    `value`: the generator's whole state: the last number it gave.
    """

    _MODULUS = (1 << 31) - 1
    _LARGEST = _MODULUS - 2  # of the generator's numbers, counted from their smallest, 1
    _powers = np.empty(0, np.uint64)

    def __init__(self, value: int) -> None:
        self.value = value

    @classmethod
    def seeded(cls, seed: int) -> MinimalStandard:
        """The generator seeded by a ``std::seed_seq`` of one number."""
        value = seed_sequence([seed & _WORD_32], 4)[3] % cls._MODULUS
        return cls(value or 1)

    def below(self, ranges: np.ndarray) -> np.ndarray:
        """One number below each of `ranges`, which are at most 2**31 - 3, drawn in turn."""
        result = np.empty(len(ranges), np.int64)
        done = 0
        while done < len(ranges):
            bound = ranges[done : done + _LARGEST_BLOCK]
            numbers = self._numbers(len(bound))
            scaling = self._LARGEST // bound
            rejected = np.flatnonzero(numbers - 1 >= bound * scaling)
            good = int(rejected[0]) if len(rejected) else len(bound)
            result[done : done + good] = (numbers[:good] - 1) // scaling[:good]
            done += good
            # A rejected number has been used up as well.
            used = good + 1 if len(rejected) else good
            if used:
                self.value = int(numbers[used - 1])
        return result

    def _numbers(self, count: int) -> np.ndarray:
        """The numbers that come next, without taking them."""
        if not len(MinimalStandard._powers):
            MinimalStandard._powers = self._make_powers()
        modulus = np.uint64(self._MODULUS)
        return (self._powers[:count] * np.uint64(self.value) % modulus).astype(np.int64)

    @classmethod
    def _make_powers(cls) -> np.ndarray:
        """The multiplier's powers 1, 2, ...: number k from now is power k times the state."""
        powers = np.array([16807], np.uint64)
        modulus = np.uint64(cls._MODULUS)
        while len(powers) < _LARGEST_BLOCK:
            powers = np.concatenate((powers, powers * powers[-1] % modulus))
        return powers


def seed_sequence(entropy: list[int], count: int) -> list[int]:
    """`count` 32-bit words made of `entropy`, as the C++ standard says ([rand.util.seedseq])."""
    words = [0x8B8B8B8B] * count
    length = len(entropy)
    lag = 11 if count >= 623 else 7 if count >= 68 else 5 if count >= 39 else 3
    if count < 7:
        lag = (count - 1) // 2
    p = (count - lag) // 2
    q = p + lag
    steps = max(length + 1, count)
    for k in range(steps):
        i, near, far = k % count, (k + p) % count, (k + q) % count
        mixed = _xor_shift(words[i] ^ words[near] ^ words[(k - 1) % count])
        first = 1664525 * mixed & _WORD_32
        second = first + (length if k == 0 else i + (entropy[k - 1] if k <= length else 0))
        words[near] = (words[near] + first) & _WORD_32
        words[far] = (words[far] + second) & _WORD_32
        words[i] = second & _WORD_32
    for k in range(steps, steps + count):
        i, near, far = k % count, (k + p) % count, (k + q) % count
        mixed = _xor_shift((words[i] + words[near] + words[(k - 1) % count]) & _WORD_32)
        third = 1566083941 * mixed & _WORD_32
        fourth = (third - i) & _WORD_32
        words[near] ^= third
        words[far] ^= fourth
        words[i] = fourth
    return words


def _xor_shift(word: int) -> int:
    return word ^ (word >> 27)
