"""Fourier transforms in the lanes of vectors, against NumPy's in double precision."""

from __future__ import annotations

import numpy as np
import pytest

from headrace.kernels.cpu.fourier import factors_of, spectrum_of
from headrace.kernels.cpu.spectrogram import Framing, SpectrumPlan, hann_window
from headrace.tensors.rows import Rows

RNG = np.random.default_rng(0)


def spectra(plan: SpectrumPlan, signal: np.ndarray, **options) -> np.ndarray:
    count = int(plan.frames.count(signal.size))
    out = np.full((plan.bins, count), np.nan, np.float32)
    write(plan, signal, out, **options)
    return out


def write(plan: SpectrumPlan, signal: np.ndarray, out: np.ndarray, **options) -> None:
    """Write the spectrogram of a single signal."""
    counts = plan.frames.count(np.array([signal.size]))
    plan.write(Rows([signal]), counts, Rows.of_array(out[None]), np.empty, **options)


def wanted(plan: SpectrumPlan, signal: np.ndarray) -> np.ndarray:
    frames = plan.frames
    places = np.arange(int(frames.count(signal.size)))[:, None] * frames.step + frames.start
    places = places + np.arange(frames.length)
    cut = np.where(
        (places >= 0) & (places < signal.size), signal[np.clip(places, 0, signal.size - 1)], 0
    )
    found = np.fft.rfft(cut.astype(np.float64) * frames.window, plan.length, axis=1)
    return (np.abs(found) ** (2 if plan.squared else 1)).T


@pytest.mark.sweep
@pytest.mark.parametrize("length", [*range(1, 68), 121, 125, 128, 243, 343, 509, 961, 1018, 2048])
@pytest.mark.parametrize("squared", [True, False])
def test_lengths(length, squared):
    frames = Framing(hann_window(length), max(length // 3, 1), center=True, reflect=False)
    plan = SpectrumPlan(frames, length, squared=squared)
    signal = RNG.standard_normal(length * 9 + 5).astype(np.float32)
    expected = wanted(plan, signal)
    np.testing.assert_allclose(
        spectra(plan, signal), expected, rtol=1e-4, atol=1e-6 * expected.max()
    )


def test_which_lengths_are_left_to_scipy():
    assert factors_of(2**4 * 3 * 5**2 * 61) is not None
    assert factors_of(67) is None
    assert spectrum_of(2 * 61) is not None
    assert spectrum_of(2 * 67) is None


@pytest.mark.sweep
@pytest.mark.parametrize("count", [1, 2, 15, 16, 17, 33])
@pytest.mark.parametrize("length", [12, 13])
def test_numbers_of_frames(count, length):
    frames = Framing(hann_window(length), 5, center=False, reflect=False)
    plan = SpectrumPlan(frames, length, squared=True)
    signal = RNG.standard_normal(length + 5 * (count - 1)).astype(np.float32)
    expected = wanted(plan, signal)
    found = spectra(plan, signal)
    assert found.shape == (length // 2 + 1, count)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6 * expected.max())


def test_nothing_but_the_signal_is_read_and_nothing_but_the_output_written():
    frames = Framing(hann_window(50), 20, center=True, reflect=True)
    plan = SpectrumPlan(frames, 64, squared=True)
    around = np.full(1000, np.nan, np.float32)
    around[300:700] = 1
    signal = around[300:700]
    count = int(frames.count(signal.size))
    memory = np.full((35, count), 7, np.float32)
    write(plan, signal, memory[1:34])
    assert np.isfinite(memory).all()
    assert (memory[[0, 34]] == 7).all()


def test_numbers_of_windows_of_signals_that_are_too_short():
    frames = Framing(hann_window(512), 256, center=False, reflect=True)
    sizes = np.array([1, 255, 256, 257, 511, 512, 767, 768])
    np.testing.assert_array_equal(frames.count(sizes), [0, 0, 0, 1, 1, 1, 1, 2])
    assert not frames.reflect
