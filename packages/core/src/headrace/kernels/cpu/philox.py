"""Philox4x32-10 and uniform distributions, compiled.

Philox is from J. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (SC 2011): ten
rounds of multiplication and exclusive or turn a 128-bit counter and a 64-bit key into 128 random
bits. The key is an operator's seed; the counter is (block of elements, sample, iteration low,
iteration high). A block is the four 32-bit words one evaluation gives:

* 32-bit draws (float32, indices, coin flips): element ``e`` is word ``e % 4`` of block ``e // 4``;
* 53-bit draws (float64): element ``e`` is made of the words ``2 * (e % 2)`` (high) and
  ``2 * (e % 2) + 1`` (low) of block ``e // 2``.

So every element can be computed alone, in any order, on any device. Apart from the conversion
to float32 everything is computed in integers and float64, with operations that IEEE 754 defines
to the last bit: a mirror of these functions that does not contract multiplications and additions
gives identical numbers.
"""

from __future__ import annotations

import numpy as np

from headrace.kernels.compilation import njit

_M0 = np.uint64(0xD2511F53)
_M1 = np.uint64(0xCD9E8D57)
_W0 = np.uint32(0x9E3779B9)
_W1 = np.uint32(0xBB67AE85)
HALF = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)
ELEVEN = np.uint64(11)
TWO_32 = 2.0**-32
TWO_53 = 2.0**-53

TILE = 1024

Key = tuple[int, int, int, int]
"""The iteration's number and the seed, in two halves of 32 bits each, the lower ones first."""


@njit(nogil=True)
def block(
    c0: int, c1: int, c2: int, c3: int, key0: int, key1: int
) -> tuple[np.uint32, np.uint32, np.uint32, np.uint32]:
    """The four words of one counter."""
    w0 = np.uint32(c0)
    w1 = np.uint32(c1)
    w2 = np.uint32(c2)
    w3 = np.uint32(c3)
    k0 = np.uint32(key0)
    k1 = np.uint32(key1)
    for _ in range(10):
        p0 = np.uint64(w0) * _M0
        p1 = np.uint64(w2) * _M1
        w0 = np.uint32(p1 >> HALF) ^ w1 ^ k0
        w2 = np.uint32(p0 >> HALF) ^ w3 ^ k1
        w1 = np.uint32(p1 & _LOW)
        w3 = np.uint32(p0 & _LOW)
        k0 = np.uint32(k0 + _W0)
        k1 = np.uint32(k1 + _W1)
    return w0, w1, w2, w3


@njit(nogil=True)
def fill_words(words: np.ndarray, blocks: int, first_block: int, sample: int, key: Key) -> None:
    """The words of `blocks` blocks, four each, from block `first_block` on."""
    for b in range(blocks):
        w0, w1, w2, w3 = block(first_block + b, sample, key[0], key[1], key[2], key[3])
        words[4 * b] = w0
        words[4 * b + 1] = w1
        words[4 * b + 2] = w2
        words[4 * b + 3] = w3


@njit(nogil=True)
def uniforms(count: int, offset: int, sample: int, key: Key) -> np.ndarray:
    """A new float64 array of `count` numbers in [0, 1), after the first `offset` of the stream."""
    first_block = offset // 2
    skip = offset - 2 * first_block
    blocks = (skip + count + 1) // 2
    words = np.empty(4 * blocks, np.uint32)
    fill_words(words, blocks, first_block, sample, key)
    out = np.empty(count, np.float64)
    for i in range(count):
        j = 2 * (i + skip)
        bits = (np.uint64(words[j]) << HALF) | np.uint64(words[j + 1])
        out[i] = np.float64(bits >> ELEVEN) * TWO_53
    return out


@njit(nogil=True)
def uniforms_of(out: np.ndarray, offset: int, numbers: np.ndarray, key: Key) -> None:
    """Fill float64 (samples, elements) as `uniforms` gives them for samples of these `numbers`."""
    count = out.shape[1]
    for k in range(len(numbers)):
        out[k] = uniforms(count, offset, numbers[k], key)


@njit(nogil=True)
def uniform(out: np.ndarray, low: float, high: float, first_sample: int, key: Key) -> None:
    """Fill float32 or float64 (samples, elements) from [low, high)."""
    samples, count = out.shape
    words = np.empty(TILE, np.uint32)
    kind, single = out.dtype.type, out.itemsize == 4
    end = kind(high)
    last = np.nextafter(end, kind(low))
    span = high - low
    each = 1 if single else 2
    tile = TILE // each
    for s in range(samples):
        for start in range(0, count, tile):
            n = min(tile, count - start)
            fill_words(words, (n * each + 3) // 4, start * each // 4, first_sample + s, key)
            for i in range(n):
                if single:
                    unit = np.float64(words[i]) * TWO_32
                else:
                    bits = (np.uint64(words[2 * i]) << HALF) | np.uint64(words[2 * i + 1])
                    unit = np.float64(bits >> ELEVEN) * TWO_53
                value = kind(low + unit * span)
                out[s, start + i] = last if value >= end else value


@njit(nogil=True)
def index_int64(out: np.ndarray, choices: int, first_sample: int, key: Key) -> None:
    """Fill int64 (samples, elements) from 0 ... choices - 1.

    The high word of word times `choices`: biased by less than choices / 2**32.
    """
    samples, count = out.shape
    words = np.empty(TILE, np.uint32)
    for s in range(samples):
        for start in range(0, count, TILE):
            n = min(TILE, count - start)
            fill_words(words, (n + 3) // 4, start // 4, first_sample + s, key)
            for i in range(n):
                out[s, start + i] = np.int64((np.uint64(words[i]) * np.uint64(choices)) >> HALF)


@njit(nogil=True)
def bernoulli_uint8(out: np.ndarray, threshold: int, first_sample: int, key: Key) -> None:
    """Fill uint8 (samples, elements) with 1 where the word is below `threshold`, else 0."""
    samples, count = out.shape
    words = np.empty(TILE, np.uint32)
    for s in range(samples):
        for start in range(0, count, TILE):
            n = min(TILE, count - start)
            fill_words(words, (n + 3) // 4, start // 4, first_sample + s, key)
            for i in range(n):
                out[s, start + i] = np.uint8(1) if np.int64(words[i]) < threshold else np.uint8(0)
