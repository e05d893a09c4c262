"""Random tensors out of the state of one Philox generator, compiled.

In dynamic mode DALI hands each call of a random operator a state of seven words. Where the numbers
of an element begin follows from its place alone: sample ``s`` of a batch uses the sequence
``65537 s`` further on, and element ``e`` of it the words from number ``257 e`` on. These constants,
and how words become numbers, were found by comparison with its values:

* a float32 is one word, rounded to 24 bits, times 2**-32;
* a float64 is 53 bits of two words, the first of which is the lower;
* ``uniform`` maps them onto the range from `low` to the number below `high`; integers of one or two
  bytes come from float32, longer ones from float64;
* ``normal`` is the cosine's number of the transform of Box and Muller (1958);
* indices are drawn by multiplication, rejecting a bias (D. Lemire, "Fast random integer generation
  in an interval", ACM TOMACS 29(1), 2019).

Every element can so be computed alone, at the price of a whole block of words for each. Only
``choice`` of slices of an array draws one element after the other.
"""

from __future__ import annotations

import numpy as np

from headrace.kernels.compilation import njit
from headrace.kernels.cpu.normal import box_muller
from headrace.kernels.cpu.philox import ELEVEN, HALF, TILE, TWO_32, TWO_53, block

SAMPLE_STRIDE = np.uint64(65537)
ELEMENT_STRIDE = np.uint64(257)
_LOW = np.uint64(0xFFFFFFFF)
_THREE = np.uint64(3)
_TWO = np.uint64(2)
_ONE = np.uint64(1)
_TINY = 2.0**-33

Place = tuple[np.uint64, np.uint64, np.uint64, np.uint64, np.uint64]
"""Number of the first sample, and the state of the generator: key, sequence, offset and phase."""


@njit(nogil=True)
def words_around(
    key: np.uint64, sequence: np.uint64, offset: np.uint64, number: np.uint64
) -> tuple[np.uint64, np.uint64, np.uint64, np.uint64]:
    """The four words of one value of the counter that word `number` is among; see `word`."""
    low = offset + (number >> _TWO)
    high = sequence + (_ONE if low < offset else np.uint64(0))
    w0, w1, w2, w3 = block(
        low & _LOW, low >> HALF, high & _LOW, high >> HALF, key & _LOW, key >> HALF
    )
    return np.uint64(w0), np.uint64(w1), np.uint64(w2), np.uint64(w3)


@njit(nogil=True)
def word(key: np.uint64, sequence: np.uint64, offset: np.uint64, number: np.uint64) -> np.uint64:
    """Word `number` of the generator whose counter is (`sequence`, `offset`), phase 0."""
    w0, w1, w2, w3 = words_around(key, sequence, offset, number)
    phase = number & _THREE
    if phase == 0:
        return w0
    if phase == 1:
        return w1
    if phase == 2:
        return w2
    return w3


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
def single_unit(key: np.uint64, sequence: np.uint64, offset: np.uint64, number: np.uint64) -> float:
    """A float32 of [0, 1], as a float64."""
    return np.float64(np.float32(np.float64(word(key, sequence, offset, number)))) * TWO_32


@njit(nogil=True)
def double_unit(key: np.uint64, sequence: np.uint64, offset: np.uint64, number: np.uint64) -> float:
    """A float64 of [0, 1) with 53 random bits."""
    low = word(key, sequence, offset, number)
    high = word(key, sequence, offset, number + _ONE)
    return np.float64((low | (high << HALF)) >> ELEVEN) * TWO_53


@njit(nogil=True)
def uniform(out: np.ndarray, low: float, high: float, single: bool, place: Place) -> None:
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
    for s in range(samples):
        stream = sequence + (first_sample + np.uint64(s)) * SAMPLE_STRIDE
        for e in range(count):
            number = phase + np.uint64(e) * ELEMENT_STRIDE
            if single:
                # The product of two float32 numbers is exact in float64: this rounds once.
                out[s, e] = np.float32(single_unit(key, stream, offset, number) * span + low)
            else:
                out[s, e] = double_unit(key, stream, offset, number) * span + low


@njit(nogil=True)
def unit(out: np.ndarray, stride: np.uint64, place: Place) -> None:
    """Fill float64 (samples, elements) from [0, 1), elements `stride` words apart."""
    first_sample, key, sequence, offset, phase = place
    samples, count = out.shape
    for s in range(samples):
        stream = sequence + (first_sample + np.uint64(s)) * SAMPLE_STRIDE
        for e in range(count):
            out[s, e] = double_unit(key, stream, offset, phase + np.uint64(e) * stride)


@njit(nogil=True)
def units_behind(out: np.ndarray, samples: np.ndarray, numbers: np.ndarray, place: Place) -> None:
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
                    out[k, i] = np.float64(drawn) * TWO_32
                    i += 1
                    number += _ONE


@njit(nogil=True)
def normal(out: np.ndarray, mean: float, stddev: float, single: bool, place: Place) -> None:
    """Fill float32 or float64 (samples, elements) with a normal distribution."""
    first_sample, key, sequence, offset, phase = place
    samples, count = out.shape
    tile = min(max(count, 1), TILE)
    radius = np.empty(tile)
    angle = np.empty(tile)
    bits = np.empty(2 * tile, np.int64)
    for s in range(samples):
        stream = sequence + (first_sample + np.uint64(s)) * SAMPLE_STRIDE
        for start in range(0, count, tile):
            n = min(tile, count - start)
            for i in range(n):
                number = phase + np.uint64(start + i) * ELEMENT_STRIDE
                if single:
                    u1 = single_unit(key, stream, offset, number)
                    angle[i] = single_unit(key, stream, offset, number + _ONE)
                else:
                    u1 = double_unit(key, stream, offset, number)
                    angle[i] = double_unit(key, stream, offset, number + _TWO)
                # Zero has no logarithm; it stands for all that rounds to it.
                radius[i] = max(u1, _TINY)
            box_muller(radius, angle, bits, n)
            for i in range(n):
                value = radius[i] * stddev + mean
                if single:
                    out[s, start + i] = np.float32(value)
                else:
                    out[s, start + i] = value


@njit(nogil=True)
def bernoulli(out: np.ndarray, threshold: int, place: Place) -> None:
    """Fill uint8 (samples, elements): 1 where the word is below `threshold`, else 0."""
    first_sample, key, sequence, offset, phase = place
    samples, count = out.shape
    for s in range(samples):
        stream = sequence + (first_sample + np.uint64(s)) * SAMPLE_STRIDE
        for e in range(count):
            drawn = word(key, stream, offset, phase + np.uint64(e) * ELEMENT_STRIDE)
            out[s, e] = np.uint8(1) if np.int64(drawn) < threshold else np.uint8(0)


@njit(nogil=True)
def below(out: np.ndarray, bounds: np.ndarray, place: Place) -> None:
    """Fill int64 (samples, elements): each from 0 ... bound - 1, one element after the other.

    `bounds` are uint64 of the same shape, at most 2**32. Where the bound is 1, no word is taken.
    """
    first_sample, key, sequence, offset, phase = place
    samples, count = out.shape
    for s in range(samples):
        stream = sequence + (first_sample + np.uint64(s)) * SAMPLE_STRIDE
        number = phase
        for e in range(count):
            bound = bounds[s, e]
            out[s, e] = 0
            if bound >= _TWO:
                out[s, e], number = integer_below(bound, key, stream, offset, number)


@njit(nogil=True)
def index(out: np.ndarray, choices: np.uint64, packed: bool, place: Place) -> None:
    """Fill int64 (samples, elements) from 0 ... choices - 1, of which there are at most 2**32.

    `packed` draws an element after the other, without a gap.
    """
    first_sample, key, sequence, offset, phase = place
    samples, count = out.shape
    for s in range(samples):
        stream = sequence + (first_sample + np.uint64(s)) * SAMPLE_STRIDE
        number = phase
        for e in range(count):
            if not packed:
                number = phase + np.uint64(e) * ELEMENT_STRIDE
            out[s, e], number = integer_below(choices, key, stream, offset, number)
