"""Spectrograms: how signals are cut into frames, and the spectra of these."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace._lazy_module import lazy_module
from headrace.kernels.cpu import spectrogram_loops
from headrace.kernels.cpu.bands import NO_BANDS, Bands, apply_bands
from headrace.kernels.cpu.decibels import NO_DECIBELS, DecibelScale, to_decibels
from headrace.kernels.cpu.fourier import spectrum_of
from headrace.kernels.cpu.rows import read_only
from headrace.tensors.rows import Rows

if TYPE_CHECKING:
    from scipy import fft

else:
    fft = lazy_module("scipy.fft")

LANES = 16
"""Frames that are worked on together."""
Memory = Callable[[tuple[int, ...], Any], np.ndarray]
"""Gives uninitialised memory of a shape and type."""


@lru_cache(maxsize=64)
def hann_window(length: int) -> np.ndarray:
    """Hann window, float32, that is symmetric around its middle and nowhere 0."""
    window = 0.5 * (1.0 - np.cos(2 * np.pi * (np.arange(length) + 0.5) / length))
    window = window.astype(np.float32)
    window.flags.writeable = False
    return window


class Framing:
    """Division of signals into frames.

    `window`: float32 ``(window_length,)``.
    """

    def __init__(self, window: np.ndarray, step: int, *, center: bool, reflect: bool) -> None:
        self.window = window
        self.length = window.size
        self.step = step
        self.center = center
        self.reflect = center and reflect

    @property
    def start(self) -> int:
        """Start of the first frame, relative to the signal."""
        return -(self.length // 2) if self.center else 0

    def count(self, size: Any) -> Any:
        """Number of frames of a signal of `size` elements, or of several of them.

        It is 0 or less where a signal is too short: where frames are not centred, and it lacks
        `step` elements or more of a frame.
        """
        if self.center:
            return size // self.step + 1
        over = size - self.length
        # Quotients are rounded towards zero.
        if isinstance(over, int):
            return (-(-over // self.step) if over < 0 else over // self.step) + 1
        return np.where(over < 0, -(-over // self.step), over // self.step) + 1


class SpectrumPlan:
    """Plan for computing the spectra of frames."""

    def __init__(self, frames: Framing, length: int, *, squared: bool) -> None:
        self.frames = frames
        self.length = length
        self.squared = squared
        self.spectrum = spectrum = spectrum_of(length)
        """`None` where there are too large factors; SciPy then finds it."""
        self.tables: tuple[Any, ...] | None = None
        """Argument `spectrum` of the compiled loop."""
        self._scratch_numbers = 0
        """Of the compiled loop, without a filter bank."""
        if spectrum is not None:
            transform = spectrum.transform
            # Half of the window: halves of sums of spectra come out without a multiplication.
            self.tables = (
                read_only(frames.window * np.float32(0.5)),
                length,
                transform.size,
                transform.steps,
                transform.cosines,
                transform.sines,
                transform.places,
                spectrum.cosines,
                spectrum.sines,
            )
            rows = -(-frames.length // LANES) * LANES + 2 * max(transform.size, 1)
            rows += self.bins + 2 * LANES + transform.scratch_rows
            self._scratch_numbers = LANES * rows

    def scratch_numbers(self, bands: Bands) -> int:
        """Scratch memory of the compiled loop, in float32 numbers."""
        return self._scratch_numbers + LANES * bands.sums

    @property
    def bins(self) -> int:
        """Number of frequencies."""
        return self.length // 2 + 1

    def write(
        self,
        signals: Rows,
        frame_counts: np.ndarray,
        out: Rows,
        memory: Memory,
        *,
        time_first: bool = False,
        bands: Bands | None = None,
        scale: DecibelScale | None = None,
    ) -> None:
        """Fill `out` with the spectrograms of `signals`, or with what is made of them.

        The result is that of `apply_bands` and `to_decibels` after one another, bit for bit.

        `frame_counts`: int64 ``(signals,)``, at least 1.
        """
        if self.tables is None:
            for signal, count, own in zip(signals, frame_counts.tolist(), out, strict=True):
                self._write_by_library(signal.reshape(-1), count, own, time_first, bands, scale)
            return
        frames = self.frames
        if bands is None:
            bands = NO_BANDS
        spectrogram_loops.spectrograms(
            signals.addresses,
            signals.sizes,
            frames.start,
            frames.step,
            frames.reflect,
            self.tables,
            self.squared,
            (*bands,),
            (scale is not None, *(scale or NO_DECIBELS)),
            time_first,
            frame_counts,
            out.flat,
            out.begins,
            memory((self.scratch_numbers(bands),), np.float32),
        )

    def _write_by_library(
        self,
        signal: np.ndarray,
        count: int,
        out: np.ndarray,
        time_first: bool,
        bands: Bands | None,
        scale: DecibelScale | None,
    ) -> None:
        """The same for lengths with large prime factors, for which SciPy knows a way."""
        frames = self.frames
        size = signal.size
        places = np.arange(count)[:, None] * frames.step + frames.start + np.arange(frames.length)
        if frames.reflect:
            period = max(2 * (size - 1), 1)
            places = np.abs(places) % period
            cut = signal[np.minimum(places, period - places) if size > 1 else places * 0]
        else:
            cut = np.where((places >= 0) & (places < size), signal[np.clip(places, 0, size - 1)], 0)
        spectra = fft.rfft(cut * frames.window, self.length, axis=1)
        sizes = spectra.real * spectra.real + spectra.imag * spectra.imag
        if not self.squared:
            np.sqrt(sizes, out=sizes)
        if not time_first:
            sizes = sizes.T
        if bands is None:
            out[...] = sizes
        else:
            apply_bands(sizes, 1 if time_first else 0, bands, out)
        if scale is not None:
            to_decibels(out, scale, out)
