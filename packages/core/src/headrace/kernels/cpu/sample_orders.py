"""Permutations and draws that are functions of a key and a position: nothing is kept of an epoch.

A permutation is a Feistel network on the bits of a position, in two parts as equal as can be. What
comes out beyond the size is put in again until it lies within ("cycle walking": Black and Rogaway,
"Ciphers with arbitrary finite domains", 2002). Rounds and draws mix by the finalizer of SplitMix64
(Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.kernels.compilation import njit

_ROUNDS = 8
_FEWEST_BITS = 8
"""Networks of fewer bits prefer some permutations."""
_GOLDEN = 0x9E3779B97F4A7C15
_WORD = (1 << 64) - 1


def key_of(*numbers: int) -> np.uint64:
    """A key that follows from integers, such as a seed and an epoch."""
    key = 0
    for number in numbers:
        key = (key ^ (number & _WORD)) * _GOLDEN + _GOLDEN & _WORD
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)):
            key = (key ^ key >> shift) * factor & _WORD
    return np.uint64(key)


@njit(nogil=True)
def _mixed(word: Any) -> Any:
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))


@njit(nogil=True)
def _permuted(position: Any, size: Any, key: Any) -> Any:
    """Permute a position, by the key of a permutation of so many."""
    bits = np.uint64(_FEWEST_BITS)
    while np.uint64(1) << bits < np.uint64(size):
        bits += np.uint64(1)
    low = bits // np.uint64(2)
    low_mask = (np.uint64(1) << low) - np.uint64(1)
    high_mask = (np.uint64(1) << (bits - low)) - np.uint64(1)
    found = np.uint64(position)
    while True:
        left, right = found & low_mask, found >> low
        for number in range(0, _ROUNDS, 2):
            turn = key + np.uint64(number + 1) * np.uint64(_GOLDEN)
            right ^= _mixed(turn + left) & high_mask
            left ^= _mixed(turn + np.uint64(_GOLDEN) + right) & low_mask
        found = right << low | left
        if found < np.uint64(size):
            return np.int64(found)


@njit(nogil=True)
def permute(start: int, size: int, window: int, key: Any, found: np.ndarray) -> None:
    """Fill `found`, int64, with a permutation of so many numbers from position `start` on.

    It is one of each `window` numbers for itself.
    """
    for k in range(len(found)):
        position = start + k
        block = position // window
        begin = block * window
        of_block = key + np.uint64(block) * np.uint64(_GOLDEN)
        found[k] = begin + _permuted(position - begin, min(window, size - begin), _mixed(of_block))


@njit(nogil=True)
def balance(
    start: int,
    epoch: int,
    size: int,
    keys: np.ndarray,
    begins: np.ndarray,
    entries: np.ndarray,
    found: np.ndarray,
) -> None:
    """Fill `found` with entries, each class as often, from position `start` of an epoch on.

    Class ``c`` has ``entries[begins[c] : begins[c + 1]]``, and goes through them again and again,
    in another order each time, over all epochs. `keys`, uint64: of the order of the epoch, and of
    the classes.
    """
    classes = len(begins) - 1
    for k in range(len(found)):
        # Rows of all classes, of which the last one may be incomplete, follow each other over all
        # epochs: no class is behind.
        row = np.int64(epoch) * size + _permuted(start + k, size, keys[0])
        label, drawn = row % classes, row // classes
        count = begins[label + 1] - begins[label]
        key = _mixed(keys[1] + np.uint64(label) * np.uint64(_GOLDEN) + np.uint64(drawn // count))
        found[k] = entries[begins[label] + _permuted(drawn % count, count, key)]


@njit(nogil=True)
def draw_numbers(start: int, key: Any, found: np.ndarray) -> None:
    """Fill `found`, float64, with numbers above 0 and below 1, from position `start` on."""
    for k in range(len(found)):
        word = _mixed(key + np.uint64(start + k + 1) * np.uint64(_GOLDEN)) >> np.uint64(12)
        found[k] = (np.float64(word) + 0.5) * 2.0**-52


@njit(nogil=True)
def swap_in_turn(order: np.ndarray, start: int, partners: np.ndarray) -> None:
    """Swap elements `start`, ``start + 1``, ... of `order` with those at `partners`."""
    for k in range(len(partners)):
        i, j = start + k, np.int64(partners[k])
        order[i], order[j] = order[j], order[i]
