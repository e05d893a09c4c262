"""Resampling of audio, beside sums written down as they are defined."""

from __future__ import annotations

import numpy as np
import pytest

from headrace.kernels.cpu.audio.resample import resample, resampled_length
from headrace.kernels.cpu.audio.sinc_window import sinc_window
from headrace.kernels.cpu.audio.widening import scale_between

TYPES = ("uint8", "int8", "uint16", "int16", "uint32", "int32", "float32")


def resampled(source, step, length, quality=50.0, dtype=None, scaled=False):
    out = np.empty((length, *source.shape[1:]), dtype or source.dtype)
    resample(source, step, sinc_window(quality), out, np.empty, scaled=scaled)
    return out


def defined(source, step, length, lobes):
    """Sums of all inputs, weighted by ``sinc`` and a Hann window, in double precision."""
    distance = np.arange(len(source)) - (np.arange(length) * step)[:, None]
    window = np.where(np.abs(distance) < lobes, 0.5 + 0.5 * np.cos(np.pi * distance / lobes), 0)
    return (np.sinc(distance) * window) @ source


@pytest.mark.sweep
@pytest.mark.parametrize(("quality", "lobes"), [(0, 3), (20, 4), (50, 16), (77, 38), (100, 64)])
@pytest.mark.parametrize("step", [0.3, 1.0, 2.75])
def test_as_defined(quality, lobes, step):
    source = np.random.default_rng(0).uniform(-1, 1, 400).astype(np.float32)
    length = int(np.ceil(400 / step))
    assert sinc_window(quality).lobes == lobes
    # The window is known at 32 places a sample, and interpolated.
    difference = resampled(source, step, length, quality) - defined(source, step, length, lobes)
    assert np.abs(difference).max() < 0.006


def test_a_tone_stays_a_tone():
    seconds = np.arange(16000) / 16000
    tone = np.sin(2 * np.pi * 440 * seconds).astype(np.float32)
    found = resampled(tone, 16000 / 22050, 22050)
    expected = np.sin(2 * np.pi * 440 * np.arange(22050) / 22050)
    assert np.abs(found - expected)[100:-100].max() < 2e-3


def test_a_step_of_one_changes_nothing():
    source = np.random.default_rng(0).uniform(-1, 1, 300).astype(np.float32)
    np.testing.assert_array_equal(resampled(source, 1.0, 300), source)


def test_every_channel_by_itself():
    source = np.random.default_rng(0).uniform(-1, 1, (300, 3)).astype(np.float32)
    together = resampled(source, 0.77, 389)
    for c in range(3):
        alone = resampled(source[:, c], 0.77, 389)
        np.testing.assert_array_equal(together[:, c], alone)


def test_views_are_read_as_they_are():
    source = np.random.default_rng(0).uniform(-1, 1, (300, 4)).astype(np.float32)
    view = source[::-2, 1:3]
    np.testing.assert_array_equal(
        resampled(view, 1.3, 115), resampled(np.ascontiguousarray(view), 1.3, 115)
    )


@pytest.mark.sweep
@pytest.mark.parametrize("source", TYPES)
@pytest.mark.parametrize("target", TYPES)
def test_scales(source, target):
    factor, summand = scale_between(np.dtype(source), np.dtype(target))
    largest = 1 if source == "float32" else np.iinfo(source).max
    assert largest * float(factor) + float(summand) == pytest.approx(1, abs=1e-6)
    middle = largest / 2 if source.startswith("u") else 0
    silence = 0.5 if target.startswith("u") else 0
    assert middle * float(factor) + float(summand) == pytest.approx(silence, abs=1e-6)


@pytest.mark.parametrize("target", TYPES)
def test_the_largest_number_stays_the_largest(target):
    for dtype in TYPES:
        top = 1 if dtype == "float32" else np.iinfo(dtype).max
        found = resampled(np.full(9, top, dtype), 1.0, 9, dtype=target, scaled=True)
        assert (found == (1 if target == "float32" else np.iinfo(target).max)).all()


@pytest.mark.parametrize(
    ("length", "rates", "expected"),
    [(0, (1, 2), 0), (3, (2, 1), 2), (100, (44100, 16000), 37), (7, (1, 0), 0)],
)
def test_lengths(length, rates, expected):
    assert resampled_length(length, *rates) == expected
