"""Random tensors out of the state of one Philox4x32-10 generator, compiled: DALI's numbers.

Philox is from J. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (SC 2011): ten rounds
of multiplication and exclusive or turn a counter of 128 bits and a key of 64 into a block of four
words of 32 bits. A draw has a state, which is key, counter and phase; see `PhiloxState`. Where the
numbers of an element begin follows from its place alone: sample ``s`` of a batch uses the sequence
``65537 s`` further on, and element ``e`` of it the words from number ``257 e`` on. These constants,
and how words become numbers, were found by comparison with DALI's values:

* a float32 is one word, rounded to 24 bits, times 2**-32;
* a float64 is 53 bits of two words, the first of which is the lower;
* ``uniform`` maps them onto the range from `low` to the number below `high`; integers of one or two
  bytes come from float32, longer ones from float64;
* ``normal`` is the cosine's number of the transform of Box and Muller (1958);
* indices are drawn by multiplication, rejecting a bias (D. Lemire, "Fast random integer generation
  in an interval", ACM TOMACS 29(1), 2019).

Every element can so be computed alone, at the price of a whole block of words for each: tensors
draw tiles of them with vector instructions. Only ``choice`` of slices of an array draws one element
after the other.
"""

from __future__ import annotations

import numpy as np

from headrace.kernels.compilation import njit
from headrace.kernels.cpu.normal import box_muller

HALF = np.uint64(32)
SAMPLE_STRIDE = np.uint64(65537)
ELEMENT_STRIDE = np.uint64(257)
_LOW = np.uint64(0xFFFFFFFF)
_ELEVEN = np.uint64(11)
_THREE = np.uint64(3)
_TWO = np.uint64(2)
_ONE = np.uint64(1)
_ZERO = np.uint64(0)
_M0 = np.uint64(0xD2511F53)
_M1 = np.uint64(0xCD9E8D57)
_W0 = np.uint64(0x9E3779B9)
_W1 = np.uint64(0xBB67AE85)
_TINY = 2.0**-33
_TILE = 1024

DrawState = tuple[np.uint64, np.uint64, np.uint64, np.uint64, np.uint64]
"""Number of the first sample, and the state of the generator: key, sequence, offset and phase."""


@njit(inline="always")
def _block(
    low: np.uint64, high: np.uint64, key: np.uint64
) -> tuple[np.uint64, np.uint64, np.uint64, np.uint64]:
    """The four words of a counter: the low halves of the results; what is above them is waste.

    Without a branch, and of a single type, loops over it become vector instructions.
    """
    w0, w1, w2, w3 = low, low >> HALF, high, high >> HALF
    k0, k1 = key, key >> HALF
    for _ in range(10):
        p0 = (w0 & _LOW) * _M0
        p1 = (w2 & _LOW) * _M1
        w0, w1, w2, w3 = (p1 >> HALF) ^ w1 ^ k0, p1, (p0 >> HALF) ^ w3 ^ k1, p0
        k0 += _W0
        k1 += _W1
    return w0, w1, w2, w3


@njit(inline="always")
def _counter(
    number: np.uint64, sequence: np.uint64, offset: np.uint64
) -> tuple[np.uint64, np.uint64]:
    """The halves of the counter whose block word `number` is in, the lower one first."""
    low = offset + (number >> _TWO)
    return low, sequence + (_ONE if low < offset else _ZERO)


@njit(nogil=True)
def words_around(
    key: np.uint64, sequence: np.uint64, offset: np.uint64, number: np.uint64
) -> tuple[np.uint64, np.uint64, np.uint64, np.uint64]:
    """The four words of one value of the counter that word `number` is among; see `word`."""
    low, high = _counter(number, sequence, offset)
    w0, w1, w2, w3 = _block(low, high, key)
    return w0 & _LOW, w1 & _LOW, w2 & _LOW, w3 & _LOW


@njit(inline="always")
def _chosen(
    number: np.uint64, w0: np.uint64, w1: np.uint64, w2: np.uint64, w3: np.uint64
) -> np.uint64:
    """The word of a block that has this number, without a branch."""
    odd, upper = (number & _ONE) != _ZERO, (number & _TWO) != _ZERO
    first, last = w1 if odd else w0, w3 if odd else w2
    return last if upper else first


@njit(nogil=True)
def _fill_words(
    words: np.ndarray,
    count: int,
    key: np.uint64,
    sequence: np.uint64,
    offset: np.uint64,
    number: np.uint64,
) -> None:
    """Word `number`, and those of the next elements, into uint32 `words`."""
    for i in range(count):
        own = number + np.uint64(i) * ELEMENT_STRIDE
        low, high = _counter(own, sequence, offset)
        w0, w1, w2, w3 = _block(low, high, key)
        words[i] = np.uint32(_chosen(own, w0, w1, w2, w3) & _LOW)


@njit(nogil=True)
def _fill_pairs(
    words: np.ndarray,
    after: np.ndarray,
    count: int,
    key: np.uint64,
    sequence: np.uint64,
    offset: np.uint64,
    number: np.uint64,
) -> None:
    """`_fill_words`, and the words that come after those into `after`."""
    for i in range(count):
        own = number + np.uint64(i) * ELEMENT_STRIDE
        low, high = _counter(own, sequence, offset)
        w0, w1, w2, w3 = _block(low, high, key)
        words[i] = np.uint32(_chosen(own, w0, w1, w2, w3) & _LOW)
        after[i] = np.uint32(_chosen(own, w1, w2, w3, w3) & _LOW)
    # The stride is 1 modulo 4: each fourth word is the last of its block.
    last = np.int64((_THREE - number) & _THREE)
    for j in range((count - last + 3) // 4):
        own = number + np.uint64(last + 4 * j) * ELEMENT_STRIDE + _ONE
        low, high = _counter(own, sequence, offset)
        after[last + 4 * j] = np.uint32(_block(low, high, key)[0] & _LOW)


@njit(nogil=True)
def fill_blocks(
    words: np.ndarray,
    count: int,
    key: np.uint64,
    sequence: np.uint64,
    offset: np.uint64,
    number: np.uint64,
) -> None:
    """Fill the first columns of uint32 `words`: with the block that word `number` is in and the
    ones after it, and the same of the next elements.
    """
    for k in range(0, len(words), 4):
        r0, r1, r2, r3 = words[k], words[k + 1], words[k + 2], words[k + 3]
        for i in range(count):
            own = number + np.uint64(i) * ELEMENT_STRIDE + np.uint64(k)
            low, high = _counter(own, sequence, offset)
            w0, w1, w2, w3 = _block(low, high, key)
            r0[i], r1[i] = np.uint32(w0 & _LOW), np.uint32(w1 & _LOW)
            r2[i], r3[i] = np.uint32(w2 & _LOW), np.uint32(w3 & _LOW)


@njit(nogil=True)
def word(key: np.uint64, sequence: np.uint64, offset: np.uint64, number: np.uint64) -> np.uint64:
    """Word `number` of the generator whose counter is (`sequence`, `offset`), phase 0."""
    w0, w1, w2, w3 = words_around(key, sequence, offset, number)
    return _chosen(number, w0, w1, w2, w3)


@njit(nogil=True)
def integer_below(
    bound: np.uint64, key: np.uint64, sequence: np.uint64, offset: np.uint64, number: np.uint64
) -> tuple[np.int64, np.uint64]:
    """An integer from 0 to `bound` - 1, at most 2**32 - 1, and the number of the next word."""
    rejected = (_ONE << HALF) % bound
    while True:
        product = word(key, sequence, offset, number) * bound
        number += _ONE
        if (product & _LOW) >= rejected:
            return np.int64(product >> HALF), number


@njit(nogil=True)
def _long_below(
    bound: np.uint64, key: np.uint64, sequence: np.uint64, offset: np.uint64, number: np.uint64
) -> tuple[np.int64, np.uint64]:
    """`integer_below` for a `bound` above 2**32, at most 2**63: its upper half, then a word."""
    last = np.int64(bound - _ONE)
    highest = np.uint64((last >> 32) + 1)
    while True:
        high, number = integer_below(highest, key, sequence, offset, number)
        found = (high << 32) | np.int64(word(key, sequence, offset, number))
        number += _ONE
        if found <= last:
            return found, number


@njit(inline="always")
def single_of(word: int) -> float:
    """A float32 of [0, 1], as a float64."""
    return np.float64(np.float32(np.float64(word))) * 2.0**-32


@njit(inline="always")
def double_of(low: int, high: int) -> float:
    """A float64 of [0, 1) with 53 random bits."""
    return np.float64((np.uint64(low) | (np.uint64(high) << HALF)) >> _ELEVEN) * 2.0**-53


@njit(nogil=True)
def double_unit(key: np.uint64, sequence: np.uint64, offset: np.uint64, number: np.uint64) -> float:
    """`double_of` of word `number` and the one after it."""
    low = word(key, sequence, offset, number)
    return double_of(low, word(key, sequence, offset, number + _ONE))


@njit(nogil=True)
def uniform(out: np.ndarray, low: float, high: float, single: bool, place: DrawState) -> None:
    """Fill float32 or float64 (samples, elements) from [low, high).

    `single` draws float32 numbers whatever the type of `out`.
    """
    first_sample, key, sequence, offset, phase = place
    samples, count = out.shape
    if single:
        low = np.float64(np.float32(low))
        below = np.nextafter(np.float32(high), np.float32(low))
        span = np.float64(np.float32(below - np.float32(low)))
    else:
        span = np.nextafter(high, low) - low
    words = np.empty((2, min(count, _TILE)), np.uint32)
    for s in range(samples):
        stream = sequence + (first_sample + np.uint64(s)) * SAMPLE_STRIDE
        for start in range(0, count, _TILE):
            n = min(_TILE, count - start)
            number = phase + np.uint64(start) * ELEMENT_STRIDE
            if single:
                _fill_words(words[0], n, key, stream, offset, number)
                for i in range(n):
                    # The product of two float32 numbers is exact in float64: this rounds once.
                    out[s, start + i] = np.float32(single_of(words[0, i]) * span + low)
            else:
                _fill_pairs(words[0], words[1], n, key, stream, offset, number)
                for i in range(n):
                    out[s, start + i] = double_of(words[0, i], words[1, i]) * span + low


@njit(nogil=True)
def unit(out: np.ndarray, stride: np.uint64, place: DrawState) -> None:
    """Fill float64 (samples, elements) from [0, 1), elements `stride` words apart."""
    first_sample, key, sequence, offset, phase = place
    samples, count = out.shape
    for s in range(samples):
        stream = sequence + (first_sample + np.uint64(s)) * SAMPLE_STRIDE
        for e in range(count):
            out[s, e] = double_unit(key, stream, offset, phase + np.uint64(e) * stride)


@njit(nogil=True)
def units_after(
    out: np.ndarray, samples: np.ndarray, numbers: np.ndarray, place: DrawState
) -> None:
    """Fill float64 (samples, elements) from [0, 1): a word each, one after the other.

    `samples` and `numbers` are int64: which samples, and how many words of each came before.
    """
    _, key, sequence, offset, phase = place
    count = out.shape[1]
    for k in range(len(samples)):
        stream = sequence + np.uint64(samples[k]) * SAMPLE_STRIDE
        number = phase + np.uint64(numbers[k])
        i = 0
        while i < count:
            # A loop is compiled over words of one type only.
            words = words_around(key, stream, offset, number)
            phase_of_word = number & _THREE
            for j, drawn in enumerate(words):
                if np.uint64(j) >= phase_of_word and i < count:
                    out[k, i] = np.float64(drawn) * 2.0**-32
                    i += 1
                    number += _ONE


@njit(nogil=True)
def normal(out: np.ndarray, mean: float, stddev: float, single: bool, place: DrawState) -> None:
    """Fill float32 or float64 (samples, elements) with a normal distribution."""
    first_sample, key, sequence, offset, phase = place
    samples, count = out.shape
    tile = min(count, _TILE)
    words = np.empty((2, tile), np.uint32)
    radius = np.empty(tile)
    angle = np.empty(tile)
    bits = np.empty(2 * tile, np.int64)
    for s in range(samples):
        stream = sequence + (first_sample + np.uint64(s)) * SAMPLE_STRIDE
        for start in range(0, count, _TILE):
            n = min(_TILE, count - start)
            number = phase + np.uint64(start) * ELEMENT_STRIDE
            _fill_pairs(words[0], words[1], n, key, stream, offset, number)
            for i in range(n):
                # Zero has no logarithm; it stands for all that rounds to it.
                if single:
                    radius[i] = max(single_of(words[0, i]), _TINY)
                    angle[i] = single_of(words[1, i])
                else:
                    radius[i] = max(double_of(words[0, i], words[1, i]), _TINY)
            if not single:
                _fill_pairs(words[0], words[1], n, key, stream, offset, number + _TWO)
                for i in range(n):
                    angle[i] = double_of(words[0, i], words[1, i])
            box_muller(radius, angle, bits, n)
            for i in range(n):
                value = radius[i] * stddev + mean
                if single:
                    out[s, start + i] = np.float32(value)
                else:
                    out[s, start + i] = value


@njit(nogil=True)
def bernoulli(out: np.ndarray, threshold: int, place: DrawState) -> None:
    """Fill uint8 (samples, elements): 1 where the word is below `threshold`, else 0."""
    first_sample, key, sequence, offset, phase = place
    samples, count = out.shape
    words = np.empty(min(count, _TILE), np.uint32)
    for s in range(samples):
        stream = sequence + (first_sample + np.uint64(s)) * SAMPLE_STRIDE
        for start in range(0, count, _TILE):
            n = min(_TILE, count - start)
            number = phase + np.uint64(start) * ELEMENT_STRIDE
            _fill_words(words, n, key, stream, offset, number)
            for i in range(n):
                out[s, start + i] = np.uint8(np.int64(words[i]) < threshold)


@njit(nogil=True)
def below(out: np.ndarray, bounds: np.ndarray, samples: np.ndarray, place: DrawState) -> None:
    """Fill int64 (samples, elements): each from 0 ... bound - 1, one element after the other.

    `bounds` are int64 of the same shape, at most 2**32. Where the bound is 1, no word is taken.
    `samples`, int64: which samples.
    """
    _, key, sequence, offset, phase = place
    for s in range(len(samples)):
        stream = sequence + np.uint64(samples[s]) * SAMPLE_STRIDE
        number = phase
        for e in range(out.shape[1]):
            bound = np.uint64(bounds[s, e])
            out[s, e] = 0
            if bound >= _TWO:
                out[s, e], number = integer_below(bound, key, stream, offset, number)


@njit(nogil=True)
def index(out: np.ndarray, choices: np.uint64, packed: bool, place: DrawState) -> None:
    """Fill int64 (samples, elements) from 0 ... choices - 1, of which there are at most 2**63.

    `packed` draws an element after the other, without a gap.
    """
    first_sample, key, sequence, offset, phase = place
    samples, count = out.shape
    if choices > _ONE << HALF:
        for s in range(samples):
            stream = sequence + (first_sample + np.uint64(s)) * SAMPLE_STRIDE
            for e in range(count):
                number = phase + np.uint64(e) * ELEMENT_STRIDE
                out[s, e], _ = _long_below(choices, key, stream, offset, number)
        return
    rejected = (_ONE << HALF) % choices
    words = np.empty(min(count, _TILE), np.uint32)
    for s in range(samples):
        stream = sequence + (first_sample + np.uint64(s)) * SAMPLE_STRIDE
        if packed:
            number = phase
            for e in range(count):
                out[s, e], number = integer_below(choices, key, stream, offset, number)
            continue
        for start in range(0, count, _TILE):
            n = min(_TILE, count - start)
            number = phase + np.uint64(start) * ELEMENT_STRIDE
            _fill_words(words, n, key, stream, offset, number)
            for i in range(n):
                product = np.uint64(words[i]) * choices
                out[s, start + i] = np.int64(product >> HALF)
                if (product & _LOW) < rejected:
                    own = number + np.uint64(i) * ELEMENT_STRIDE + _ONE
                    out[s, start + i], _ = integer_below(choices, key, stream, offset, own)


@njit(nogil=True)
def permutation(out: np.ndarray, place: DrawState) -> None:
    """Fill int64 `out` with a permutation of its places, by the words of the first sample.

    The rules are those of ``std::shuffle``: see `headrace.operators.readers.standard_shuffle`.
    """
    first_sample, key, sequence, offset, phase = place
    stream, number, size = sequence + first_sample * SAMPLE_STRIDE, phase, len(out)
    in_pairs = size < 1 << 16
    for k in range(size):
        out[k] = k
    k = 1
    while k < size:
        if in_pairs and (size - k) % 2 == 0:  # one word is enough for two swaps
            second = np.uint64(k + 2)
            drawn, number = integer_below(second * np.uint64(k + 1), key, stream, offset, number)
            first, after = divmod(drawn, np.int64(k + 2))
            out[k], out[first] = out[first], out[k]
            k += 1
        else:
            after, number = integer_below(np.uint64(k + 1), key, stream, offset, number)
        out[k], out[after] = out[after], out[k]
        k += 1
