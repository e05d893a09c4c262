"""An audio file in memory, opened: what is in it, and its samples."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Self

import numpy as np

from headrace.errors import BadSampleError
from headrace.kernels.cpu.audio.flac import FlacHeader, decode_flac, read_flac_header
from headrace.kernels.cpu.audio.sample_loops import convert, convert_24_bit, mix
from headrace.kernels.cpu.audio.sound_file import SoundFile
from headrace.kernels.cpu.audio.wave_header import WaveHeader, read_wave_header

Allocate = Callable[[tuple[int, ...], np.dtype], np.ndarray]

_STORED: dict[tuple[int, bool], np.dtype] = {
    (8, False): np.dtype(np.uint8),
    (16, False): np.dtype(np.int16),
    (24, False): np.dtype(np.uint8),
    (32, False): np.dtype(np.int32),
    (32, True): np.dtype(np.float32),
    (64, True): np.dtype(np.float64),
}
_FLOAT = np.dtype(np.float32)
_HEADER_BYTES = 4096
"""Bytes of a header that are read at first; libsndfile reads longer ones again."""


class Clip:
    """An audio file whose samples can be read, once.

    Attributes
    ----------
    frames
        Number of samples of each channel.
    channels
        Number of channels.
    rate
        Samples a second, in Hz.

    `source`: the file, uint8, 1-D, contiguous; or the path of a local one, of which then only what
    is wanted is read.
    """

    __slots__ = ("_data", "_file", "_flac", "_header", "channels", "frames", "rate")

    def __init__(self, source: np.ndarray | str) -> None:
        self._file: SoundFile | None = None
        if isinstance(source, str):
            header = _header_of_file(source)
        elif source.size:
            header = read_wave_header(source)
            self._data = source
        else:
            raise BadSampleError("The data is empty: it has no bytes, so it is no audio file.")
        if header is not None and header.missing:
            total = header.size + header.missing
            raise BadSampleError(
                f"The WAV file is cut off: its header announces {total} bytes of samples, "
                f"and {header.size} are there."
            )
        self._header = header
        self._flac: FlacHeader | None = None
        known: WaveHeader | FlacHeader | SoundFile | None = header
        if header is None and not isinstance(source, str):
            known = self._flac = read_flac_header(source)
        if known is None or isinstance(source, str):
            known = self._file = SoundFile(source)
        self.frames, self.channels, self.rate = known.frames, known.channels, known.rate

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        if self._file is not None:
            self._file.close()

    def read(self, out: np.ndarray, temp: Allocate, first: int = 0, *, mixed: bool = False) -> None:
        """Fill `out` with the samples from frame number `first` on."""
        if not out.size:
            return
        mixed = mixed and self.channels > 1
        source = self._stored(out, temp, first, mixed)
        if source is None:
            return
        flat = out.reshape(-1)
        if mixed:
            mix(source, self.channels, flat)
        else:
            convert(source, flat)

    def _stored(
        self, out: np.ndarray, temp: Allocate, first: int, mixed: bool
    ) -> np.ndarray | None:
        """Samples still to be converted, flat; `None` where `out` has them already."""
        count = len(out) * self.channels
        if self._flac is not None:
            if len(out) == self.frames:
                decoded = decode_flac(self._data, self._flac, temp)
                if decoded is not None:
                    return decoded
            # A part is found faster by libsndfile; and it knows what is wrong.
            self._flac, self._file = None, SoundFile(self._data)
        if self._file is not None:
            if not mixed:
                self._file.read(out, first, len(out))
                return None
            whole = temp((count,), _FLOAT)
            self._file.read(whole, first, len(out))
            return whole
        header = self._header
        assert header is not None
        begin = header.offset + first * self.channels * (header.bits // 8)
        raw = self._data[begin : begin + count * (header.bits // 8)]
        if header.bits == 24:
            wide = temp((count,), np.dtype(np.int32))
            convert_24_bit(raw, wide)
            return wide
        source = raw.view(_STORED[header.bits, header.is_float])
        return source if source.flags.aligned else source.copy()


def _header_of_file(path: str) -> WaveHeader | None:
    with open(path, "rb") as file:
        begin = file.read(_HEADER_BYTES)
        return read_wave_header(np.frombuffer(begin, np.uint8), os.fstat(file.fileno()).st_size)
