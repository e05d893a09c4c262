"""Weighted sums along an axis, and the logarithm of decibels."""

from __future__ import annotations

import numpy as np
import pytest

from headrace.kernels.cpu.bands import Bands, apply_bands, cosine_bands, mel_bands
from headrace.kernels.cpu.decibels import DecibelScale, to_decibels

RNG = np.random.default_rng(0)


def matrix_of(bands: Bands, size: int) -> np.ndarray:
    matrix = np.zeros((bands.sums, size))
    for row, (first, count, at) in zip(matrix, bands.ranges, strict=True):
        row[first : first + count] = bands.weights[at : at + count]
    return matrix


MAKERS = {
    "mel": lambda n: mel_bands(n, 21, 100.0, 0.0, 50.0, "htk", True),
    "cosine": lambda n: cosine_bands(n, 9, 2, True, 22.0),
}


@pytest.mark.sweep
@pytest.mark.parametrize("kind", MAKERS)
@pytest.mark.parametrize(
    ("shape", "axis"),
    [
        ((40, 100), 0),
        ((40, 16), 0),
        ((40, 5), 0),
        ((100, 40), 1),
        ((3, 40), 1),
        ((40,), 0),
        ((2, 40, 3), 1),
        ((9, 40, 3), 1),
        ((2, 40, 33), 1),
        ((2, 3, 4, 40), 3),
    ],
)
def test_sums(kind, shape, axis):
    data = RNG.standard_normal(shape).astype(np.float32)
    bands = MAKERS[kind](40)
    out = np.full((*shape[:axis], bands.sums, *shape[axis + 1 :]), np.nan, np.float32)
    apply_bands(data, axis, bands, out)
    expected = np.moveaxis(np.tensordot(matrix_of(bands, 40), data, (1, axis)), 0, axis)
    np.testing.assert_allclose(out, expected, rtol=1e-5, atol=1e-5)


def test_strided_data():
    data = RNG.standard_normal((40, 200)).astype(np.float32)[:, ::-2]
    bands = cosine_bands(40, 9, 2, False, 0.0)
    out = np.empty((9, 100), np.float32)
    apply_bands(data, 0, bands, out)
    np.testing.assert_allclose(out, matrix_of(bands, 40) @ data, rtol=1e-5, atol=1e-4)


def test_triangles_overlap_and_add_up():
    filters = matrix_of(mel_bands(513, 40, 16000.0, 0.0, 8000.0, "slaney", False), 513)
    peaks = filters.argmax(axis=1)
    total = filters[:, peaks[0] : peaks[-1]].sum(axis=0)
    np.testing.assert_allclose(total, 1, atol=1e-5)


def test_areas_of_triangles():
    filters = matrix_of(mel_bands(8193, 20, 16000.0, 0.0, 8000.0, "htk", True), 8193)
    np.testing.assert_allclose(filters.sum(axis=1) * 16000 / 16384, 1, rtol=1e-3)


def test_decibels_are_right_to_the_last_digits():
    values = np.exp(RNG.uniform(-87, 88, 100_000)).astype(np.float32)
    values = np.concatenate([values, RNG.uniform(0.5, 2, 100_000).astype(np.float32)])
    values = np.concatenate([values, np.float32([1e-45, 1e-40, 1.1754944e-38, 3.4e38, 1])])
    scale = DecibelScale(np.float32(1), np.float32(1e-45), np.float32(10 / np.log(10)))
    out = np.empty_like(values)
    to_decibels(values, scale, out)
    np.testing.assert_allclose(out, 10 * np.log10(values.astype(np.float64)), rtol=4e-7)


@pytest.mark.parametrize("size", [1, 15, 16, 17, 31, 32, 33, 100])
def test_the_largest_value_is_the_reference(size):
    values = RNG.random(size).astype(np.float32)
    for place in (0, size // 2, size - 1):
        data = values.copy()
        data[place] = 5
        memory = np.full(size + 2, 7, np.float32)
        scale = DecibelScale(np.float32(0), np.float32(1e-10), np.float32(10 / np.log(10)))
        to_decibels(data, scale, memory[1:-1])
        np.testing.assert_allclose(memory[1:-1], 10 * np.log10(data / 5), rtol=1e-5, atol=1e-6)
        assert memory[0] == memory[-1] == 7
