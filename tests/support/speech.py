"""The speech in ``tests/data/audio``, and audio files made in memory."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import soundfile

FOLDER = Path(__file__).parents[1] / "data" / "audio"
CLIPS = ("ferry.ogg", "market.ogg", "river.flac", "signal.flac")
"""Sentences of 2 to 3 seconds at 16 kHz."""
WORDS = tuple(sorted(p.name for p in FOLDER.glob("*o_*.*")))
"""One word of 0.2 seconds at 8 kHz, in many formats, as ``mono_...`` and ``stereo_...``."""


def encoded(name: str) -> np.ndarray:
    """The bytes of one of the files."""
    return np.fromfile(FOLDER / name, np.uint8)


def encode(
    samples: np.ndarray, rate: int = 8000, kind: str = "WAV", subtype: str = "PCM_16"
) -> np.ndarray:
    """The bytes of a file of `samples`."""
    target = io.BytesIO()
    soundfile.write(target, samples, rate, format=kind, subtype=subtype)
    return np.frombuffer(target.getvalue(), np.uint8)


def decoded(data: np.ndarray, dtype: str = "float32") -> np.ndarray:
    """What libsndfile makes of the bytes of a file, ``(frames, channels)``."""
    return soundfile.read(io.BytesIO(data.tobytes()), dtype=dtype, always_2d=True)[0]
