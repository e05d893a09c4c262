"""Spectrograms, and what follows from them, by instructions: see
`headrace.kernels.cpu.step_loops`.
"""

from __future__ import annotations

import numba
import numpy as np

from headrace.kernels.compilation import njit
from headrace.kernels.cpu.pointers import pointer
from headrace.kernels.cpu.spectrogram_loops import spectrogram
from headrace.kernels.cpu.step_loops import columns_at, floats, reals_at, volume, words_at

SIGNAL, SIGNAL_EXTENTS, SIGNAL_AXES, OUT, OUT_EXTENTS, _, TIME_FIRST, ROWS, CENTER = range(9)
STEP, LENGTH, START, REFLECT, SQUARED, IN_DECIBELS, REFERENCE, SMALLEST, FACTOR = range(9, 18)
SCRATCH, SCRATCH_NUMBERS, TRANSFORM_LENGTH, TRANSFORM_SIZE = range(18, 22)
WINDOW, STEPS, COSINES, SINES, PLACES, JOINT_COSINES, JOINT_SINES, BANDS, WEIGHTS = range(22, 40, 2)
"""Words: columns of the signals and of the results, what `SpectrumPlan.write` is given, column and
size of scratch memory, and the tables of the transform and of the filter bank, two words each."""


def plan(words_address: int, table: int, count: int, _: int) -> int:
    """Count the frames of all signals; what is no signal, or too short, is refused."""
    words, columns = words_at(words_address), columns_at(table, count)
    frames_at = words[OUT_EXTENTS] + (0 if words[TIME_FIRST] else 1)
    rows_at = words[OUT_EXTENTS] + (1 if words[TIME_FIRST] else 0)
    step, length = words[STEP], words[LENGTH]
    for k in range(count):
        size = volume(columns, words[SIGNAL_EXTENTS], words[SIGNAL_AXES], k)
        long_axes = 0
        for axis in range(words[SIGNAL_AXES]):
            long_axes += columns[words[SIGNAL_EXTENTS] + axis, k] > 1
        if size == 0 or long_axes > 1:
            return 1
        if words[CENTER]:
            frames = size // step + 1
        else:
            over = size - length
            frames = (-(-over // step) if over < 0 else over // step) + 1
        if frames < 1:
            return 1
        columns[frames_at, k] = frames
        columns[rows_at, k] = words[ROWS]
    return 0


@njit(nogil=True)
def _floats(words: np.ndarray, at: int) -> np.ndarray:
    return floats(words[at], words[at + 1])


@njit(nogil=True)
def _rows(words: np.ndarray, at: int) -> np.ndarray:
    return numba.carray(pointer(np.uint64(words[at])), (words[at + 1], 3), np.int64)


def carry(words_address: int, table: int, count: int, k: int) -> int:
    """Compute the spectrogram of one signal, or what is made of it."""
    words, reals = words_at(words_address), reals_at(words_address)
    columns = columns_at(table, count)
    size = volume(columns, words[SIGNAL_EXTENTS], words[SIGNAL_AXES], k)
    frames = columns[words[OUT_EXTENTS] + (0 if words[TIME_FIRST] else 1), k]
    places = numba.carray(pointer(np.uint64(words[PLACES])), words[PLACES + 1], np.int64)
    spectrum = (
        _floats(words, WINDOW),
        words[TRANSFORM_LENGTH],
        words[TRANSFORM_SIZE],
        _rows(words, STEPS),
        _floats(words, COSINES),
        _floats(words, SINES),
        places,
        _floats(words, JOINT_COSINES),
        _floats(words, JOINT_SINES),
    )
    scale = (
        words[IN_DECIBELS] != 0,
        np.float32(reals[REFERENCE]),
        np.float32(reals[SMALLEST]),
        np.float32(reals[FACTOR]),
    )
    spectrogram(
        floats(columns[words[SIGNAL], k], size),
        words[START],
        words[STEP],
        words[REFLECT] != 0,
        spectrum,
        words[SQUARED] != 0,
        (_rows(words, BANDS), _floats(words, WEIGHTS)),
        scale,
        words[TIME_FIRST] != 0,
        frames,
        floats(columns[words[OUT], k], frames * words[ROWS]),
        floats(columns[words[SCRATCH], k], words[SCRATCH_NUMBERS]),
    )
    return 0
