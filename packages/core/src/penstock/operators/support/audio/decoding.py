"""Decoding of one audio file as operators ask for it: type, channels, sampling rate."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from penstock.errors import ArgumentValueError, DataTypeError, ShapeError
from penstock.kernels.cpu.audio.resample import resample, resampled_length
from penstock.kernels.cpu.audio.sinc_window import SincWindow, sinc_window
from penstock.operators.support.argument_types import FloatArg
from penstock.operators.support.schema import Arg
from penstock.tensors.addresses import addresses_of
from penstock.types import DALIDataType, to_numpy_type

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.kernels.cpu.audio.clip import Clip
    from penstock.operators.support.operator import SampleContext

QUALITY = Arg(
    "quality",
    FloatArg,
    50.0,
    "Quality of resampling, 0 to 100: the window reaches 3 samples to either side at 0, 16 at 50 "
    "and 64 at 100.",
)
MOST_FRAMES = 1 << 40

_DTYPES = (DALIDataType.FLOAT, DALIDataType.INT16, DALIDataType.INT32)
_FLOAT = np.dtype(np.float32)


def check_quality(quality: float) -> None:
    """Raise `ArgumentValueError` unless `quality` is one."""
    if not 0 <= quality <= 100:
        raise ArgumentValueError(f"`quality` is {quality:g}, but must be between 0 and 100.")


class AudioDecoding:
    """How files are decoded.

    Parameters
    ----------
    dtype
        Element type of the samples: `FLOAT`, `INT16` or `INT32`.
    downmix
        Whether to make one channel of all of them.
    quality
        See `QUALITY`.

    Raises
    ------
    DataTypeError, ArgumentValueError
        If there is no such type or quality.
    """

    def __init__(self, dtype: DALIDataType, *, downmix: bool, quality: float) -> None:
        if dtype not in _DTYPES:
            allowed = ", ".join(t.name for t in _DTYPES)
            raise DataTypeError(
                f"`dtype` must be one of {allowed}, got {dtype.name}. Use `fn.cast` on the decoded "
                "audio for other types."
            )
        check_quality(quality)
        from penstock.kernels.cpu.audio import wave_batch
        from penstock.kernels.cpu.audio.clip import Clip

        self._clip = Clip
        self._waves = wave_batch
        self.dtype = np.dtype(to_numpy_type(dtype))
        self.downmix = downmix
        self.ndim = 1 if downmix else 2
        self._quality = quality
        self._window: SincWindow | None = None

    def open(self, encoded: np.ndarray | str) -> Clip:
        """The audio file that `encoded` holds, or that has this path.

        Raises
        ------
        BadSampleError
            If it is none.
        """
        if isinstance(encoded, str):
            return self._clip(encoded)
        check_encoded_audio(encoded.ndim)
        return self._clip(encoded if encoded.flags.c_contiguous else np.ascontiguousarray(encoded))

    def open_all(self, encoded: Sequence[np.ndarray]) -> list[Clip]:
        """The audio files that these samples hold; headers of plain WAV files are read at once.

        Raises
        ------
        BadSampleError
            If one of them is none.
        """
        if not all(data.ndim == 1 and data.flags.c_contiguous for data in encoded):
            return [self.open(data) for data in encoded]
        found = self._waves.headers_of_waves(addresses_of(encoded), encoded)
        return [
            self.open(data) if wave is None else self._clip.of_wave(data, *wave)
            for data, wave in zip(encoded, found, strict=True)
        ]

    def out_frames(self, clip: Clip, rate: float | None = None, frames: int | None = None) -> int:
        """How many frames `decode` makes of a file, or of so many frames of it.

        Raises
        ------
        ArgumentValueError
            If they are too many to hold.
        """
        frames = clip.frames if frames is None else frames
        if rate is None or not rate > 0 or rate == clip.rate:
            return frames
        if not frames * rate / clip.rate < MOST_FRAMES:
            raise ArgumentValueError(
                f"`sample_rate` is {rate:g} Hz: the {frames} samples at {clip.rate} Hz would "
                "become too many to hold."
            )
        return resampled_length(frames, clip.rate, rate)

    def decode(
        self,
        c: SampleContext,
        clip: Clip,
        rate: float | None = None,
        first: int = 0,
        frames: int | None = None,
    ) -> np.ndarray:
        """The samples of `clip` from frame `first` on, ``(frames,)`` or ``(frames, channels)``.

        Parameters
        ----------
        rate
            Sampling rate in Hz to convert to; none if `None`, not positive, or the file's own.
        first, frames
            What to read of the file, inside of it.
        """
        frames = clip.frames if frames is None else frames
        channels = () if self.downmix else (clip.channels,)
        if rate is None or not rate > 0 or rate == clip.rate:
            out = c.empty((frames, *channels), self.dtype)
            clip.read(out, c.temp, first, mixed=self.downmix)
            return out
        length = self.out_frames(clip, rate, frames)
        source = c.temp((frames, *channels), _FLOAT)
        clip.read(source, c.temp, first, mixed=self.downmix)
        out = c.empty((length, *channels), self.dtype)
        if self._window is None:
            self._window = sinc_window(self._quality)
        resample(source, clip.rate / rate, self._window, out, c.temp, scaled=True)
        return out


class PlainFiles:
    """Encoded files of which most are WAV files of plain numbers, decoded by two compiled calls.

    Parameters
    ----------
    encoded
        The files, uint8, 1-D, contiguous.
    decoding
        How they are decoded.
    rate
        Sampling rate in Hz to convert to, as of `AudioDecoding.decode`: files of other rates are
        not decoded here.

    Attributes
    ----------
    found
        bool ``(files,)``: which of them are decoded here.
    shapes
        int64 ``(files, ndim)``: the shapes of their samples; 0 for others.
    rates
        float32 ``(files,)``: their own sampling rates.
    """

    def __init__(
        self, encoded: Sequence[np.ndarray], decoding: AudioDecoding, rate: float | None
    ) -> None:
        from penstock.kernels.cpu.audio import wave_batch as waves

        count = len(encoded)
        self._waves = waves
        self._mixed = decoding.downmix
        self._addresses = addresses_of(encoded)
        self._headers = headers = np.zeros((count, waves.COLUMNS), np.int64)
        sizes = np.fromiter(map(len, encoded), np.int64, count)
        waves.survey_waves(self._addresses, sizes, headers)
        if rate is not None and rate > 0:
            headers[headers[:, waves.RATE] != rate, waves.FOUND] = 0
        self.found = headers[:, waves.FOUND] != 0
        self.shapes = headers[:, [waves.FRAMES, waves.CHANNELS][: decoding.ndim]]
        if not self.found.all():
            self.shapes[~self.found] = 0
        self.rates = headers[:, waves.RATE].astype(np.float32)

    def read(self, out: np.ndarray, begins: np.ndarray) -> None:
        """Fill `out`, flat, with the samples of each file from element ``begins[file]`` on."""
        self._waves.decode_waves(self._addresses, self._headers, self._mixed, out, begins)


def check_encoded_audio(ndim: int | None) -> None:
    """Raise `ShapeError` unless data with so many dimensions can be the bytes of a file."""
    if ndim not in (None, 1):
        raise ShapeError(
            f"Encoded audio must be flat arrays of bytes, got {ndim}-dimensional data. "
            "Flatten it with `fn.reshape(..., shape=[-1])`, or drop the decoder if the data is "
            "decoded already."
        )
