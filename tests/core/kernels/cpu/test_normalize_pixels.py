"""Normalisation of pixels against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from headrace.kernels.cpu import half, normalize_pixels
from headrace.kernels.cpu.normalize_pixels import pattern

MEANS = np.array([100.5, 3.25, -7.0, 60.0, 1.0], np.float32)
FACTORS = np.array([0.0173, 2.5, -0.7, 0.11, 1.0], np.float32)


def expected(source, channels, dtype):
    values = (source.astype(np.float32) - MEANS[:channels]) * FACTORS[:channels]
    if np.dtype(dtype).kind == "f":
        return values.astype(dtype)
    info = np.iinfo(dtype)
    halves_away = np.trunc(values.astype(np.float64) + np.copysign(0.5, values))
    return halves_away.clip(info.min, info.max).astype(dtype)


def views(image):
    yield image
    yield image[:, ::-1]
    yield image[3:19, 2:-1]
    yield image[::2]
    yield image[:, ::2]
    yield image[::-1, :, ::-1]
    yield image.transpose(1, 0, 2)
    yield image[:, :3]


@pytest.mark.sweep
@pytest.mark.parametrize("channels", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.uint8, np.int8])
def test_layouts_and_strides(channels, dtype):
    image = np.random.default_rng(0).integers(0, 256, (24, 41, channels), dtype=np.uint8)
    means, factors = pattern(MEANS[:channels]), pattern(FACTORS[:channels])
    for source in views(image):
        want = expected(source, channels, dtype)
        for axes in ((0, 1, 2), (2, 0, 1), (1, 0, 2)):
            shape = tuple(source.shape[axis] for axis in axes)
            out = np.empty(shape, dtype).transpose(np.argsort(axes))
            normalize_pixels.normalize_pixels(source, means, factors, out)
            np.testing.assert_array_equal(out, want)


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.uint16, np.int32, np.float16, np.float32])
def test_types_of_the_source(dtype):
    rng = np.random.default_rng(0)
    image = rng.integers(0, 100, (9, 33, 3)).astype(dtype)
    image.setflags(write=False)
    out = np.empty((3, 9, 33), np.float32)
    normalize_pixels.normalize_pixels(
        image, pattern(MEANS[:3]), pattern(FACTORS[:3]), out.transpose(1, 2, 0)
    )
    np.testing.assert_array_equal(out, expected(image, 3, np.float32).transpose(2, 0, 1))


@pytest.mark.parametrize("width", [3, 16, 40])
@pytest.mark.parametrize("step", [1, -1])
def test_channels_that_the_source_does_not_have(width, step):
    image = np.random.default_rng(0).integers(0, 256, (5, width, 3), dtype=np.uint8)[:, ::step]
    means, factors = pattern([1, 2, 3, -9.5]), pattern([2, 2, 2, 1])
    for shape in ((5, width, 4), (4, 5, width)):
        out = np.empty(shape, np.float32)
        view = out if shape[-1] == 4 else out.transpose(1, 2, 0)
        normalize_pixels.normalize_pixels(image, means, factors, view)
        np.testing.assert_array_equal(view[..., :3], (image - np.float32([1, 2, 3])) * 2)
        assert (view[..., 3] == 9.5).all()


def test_special_values_become_integers():
    image = np.array([np.nan, np.inf, -np.inf, 0.5, -0.5, 1.5], np.float32).reshape(1, 6, 1)
    for dtype, want in (
        (np.uint8, [0, 255, 0, 1, 0, 2]),
        (np.int8, [0, 127, -128, 1, -1, 2]),
    ):
        out = np.empty(image.shape, dtype)
        normalize_pixels.normalize_pixels(image, pattern([0]), pattern([1]), out)
        assert out.ravel().tolist() == want


def test_unaligned_source():
    image = np.arange(30, dtype=np.float32).reshape(2, 5, 3)
    raw = np.frombuffer(b"\0" + image.tobytes(), np.uint8)[1:].view(np.float32)
    out = np.empty(image.shape, np.float32)
    normalize_pixels.normalize_pixels(raw.reshape(2, 5, 3), pattern([0] * 3), pattern([1] * 3), out)
    np.testing.assert_array_equal(out, image)


def test_without_instructions_for_float16(monkeypatch):
    monkeypatch.setattr(half, "available", lambda: False)
    image = np.random.default_rng(0).integers(0, 256, (5, 20, 3), dtype=np.uint8)
    out = np.empty(image.shape, np.float16)
    normalize_pixels.normalize_pixels(image, pattern(MEANS[:3]), pattern(FACTORS[:3]), out)
    np.testing.assert_array_equal(out, expected(image, 3, np.float16))
