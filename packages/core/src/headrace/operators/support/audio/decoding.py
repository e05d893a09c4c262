"""Decoding of one audio file as operators ask for it: type, channels, sampling rate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from headrace.errors import ArgumentValueError, DataTypeError, ShapeError
from headrace.kernels.cpu import array_facts as _arrays
from headrace.kernels.cpu.audio.resample import resample, resampled_length
from headrace.kernels.cpu.audio.sinc_window import SincWindow, sinc_window
from headrace.kernels.cpu.spectrogram import Memory
from headrace.operators.support.argument_types import FloatArg
from headrace.operators.support.schema import Arg
from headrace.tensors.rows import Rows
from headrace.types import DALIDataType, to_numpy_type

if TYPE_CHECKING:
    from headrace.kernels.cpu.audio.clip import Clip
    from headrace.operators.support.operator import SampleContext

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
    """Decoding of audio files, as the arguments ask for it."""

    def __init__(self, dtype: DALIDataType, *, downmix: bool, quality: float) -> None:
        if dtype not in _DTYPES:
            allowed = ", ".join(t.name for t in _DTYPES)
            raise DataTypeError(
                f"`dtype` must be one of {allowed}, got {dtype.name}. Use `fn.cast` on the decoded "
                "audio for other types."
            )
        check_quality(quality)
        from headrace.kernels.cpu.audio import wave_batch
        from headrace.kernels.cpu.audio.clip import Clip

        self._clip = Clip
        self._waves = wave_batch
        self.dtype = np.dtype(to_numpy_type(dtype))
        self.downmix = downmix
        self.ndim = 1 if downmix else 2
        self._quality = quality
        self._window: SincWindow | None = None

    def open(self, encoded: np.ndarray | str) -> Clip:
        """The audio file that `encoded` holds, or that has this path."""
        if isinstance(encoded, str):
            return self._clip(encoded)
        check_encoded_audio(encoded.ndim)
        return self._clip(encoded if encoded.flags.c_contiguous else np.ascontiguousarray(encoded))

    def read_headers(
        self, encoded: Sequence[np.ndarray], wanted: np.ndarray | None
    ) -> AudioHeaders:
        """Read the headers of the files in these samples."""
        waves = self._waves
        for data in encoded:
            check_encoded_audio(data.ndim)
        files = _arrays.rows_of(list(encoded))
        headers = np.zeros((len(encoded), waves.COLUMNS), np.int64)
        waves.survey_waves(files.addresses, np.fromiter(map(len, encoded), np.int64), headers)
        rates = headers[:, waves.RATE].astype(np.float32)
        if wanted is not None:
            headers[(wanted > 0) & (headers[:, waves.RATE] != wanted), waves.FOUND] = 0
        shapes = headers[:, [waves.FRAMES, waves.CHANNELS][: self.ndim]]
        clips: list[Clip | None] = [None] * len(encoded)
        for k in np.flatnonzero(headers[:, waves.FOUND] == 0).tolist():
            clip = clips[k] = self.open(encoded[k])
            rates[k] = clip.rate
            frames = self.out_frames(clip, None if wanted is None else float(wanted[k]))
            shapes[k] = (frames, clip.channels)[: self.ndim]
        return AudioHeaders(headers, clips, shapes, rates)

    def read_plain(self, encoded: Rows, headers: Sequence[Any], out: Rows) -> None:
        """Fill `out` with the samples of files that `read_headers` opened no clip for."""
        self._waves.decode_waves(
            encoded.addresses, np.asarray(headers), self.downmix, out.flat, out.begins
        )

    def out_frames(self, clip: Clip, rate: float | None = None, frames: int | None = None) -> int:
        """Number of frames that `decode` makes of a file, or of so many frames of it."""
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

        `rate`: sampling rate in Hz to convert to; none if `None`, not positive, or the file's own.
        """
        frames = clip.frames if frames is None else frames
        channels = () if self.downmix else (clip.channels,)
        out = c.empty((self.out_frames(clip, rate, frames), *channels), self.dtype)
        self.read_clip(clip, rate, out, c.temp, first, frames)
        return out

    def read_clip(
        self,
        clip: Clip,
        rate: float | None,
        out: np.ndarray,
        temp: Memory,
        first: int = 0,
        frames: int | None = None,
    ) -> None:
        """Fill `out`, contiguous, with the samples of `clip`; see `decode`."""
        if rate is None or not rate > 0 or rate == clip.rate:
            clip.read(out, temp, first, mixed=self.downmix)
            return
        source = temp((clip.frames if frames is None else frames, *out.shape[1:]), _FLOAT)
        clip.read(source, temp, first, mixed=self.downmix)
        if self._window is None:
            self._window = sinc_window(self._quality)
        resample(source, clip.rate / rate, self._window, out, temp, scaled=True)


class AudioHeaders(NamedTuple):
    """Headers of encoded files, read before any is decoded.

    `headers`: int64 ``(files, COLUMNS)``, as of `headrace.kernels.cpu.audio.wave_batch`: plain WAV
    files, of the rate that is wanted, are `FOUND`. `clips`: the others, opened. `shapes`: int64
    ``(files, ndim)``: the shapes of their samples. `rates`: float32 ``(files,)``: their own
    sampling rates in Hz.
    """

    headers: np.ndarray
    clips: list[Clip | None]
    shapes: np.ndarray
    rates: np.ndarray


def check_encoded_audio(ndim: int | None) -> None:
    """Raise `ShapeError` unless data with so many dimensions can be the bytes of a file."""
    if ndim not in (None, 1):
        raise ShapeError(
            f"Encoded audio must be flat arrays of bytes, got {ndim}-dimensional data. "
            "Flatten it with `fn.reshape(..., shape=[-1])`, or drop the decoder if the data is "
            "decoded already."
        )
