"""What the cases of operators are fed: three samples of each kind, of different shapes."""

from __future__ import annotations

import functools
import io
import wave
from pathlib import Path

import cv2
import numpy as np

VIDEOS = Path(__file__).parents[1] / "data/video"
"""A folder with two small videos, VP9, of 7 and 4 frames."""


def _random(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


def images() -> list[np.ndarray]:
    """Three images of different shapes, HWC."""
    draw = _random(1)
    shapes = ((40, 56, 3), (33, 31, 3), (48, 20, 3))
    return [draw.integers(0, 256, shape, dtype=np.uint8) for shape in shapes]


def clips() -> list[np.ndarray]:
    """Three mono clips of different lengths."""
    draw = _random(2)
    return [draw.normal(size=n).astype(np.float32) for n in (4000, 5017, 3000)]


def matrices() -> list[np.ndarray]:
    """Three small matrices of different shapes."""
    draw = _random(3)
    return [draw.normal(size=s).astype(np.float32) for s in ((4, 6), (1, 3), (5, 2))]


def affine_maps() -> list[np.ndarray]:
    """Three maps of planes."""
    draw = _random(4)
    return [draw.normal(size=(2, 3)).astype(np.float32) for _ in range(3)]


@functools.cache
def encoded() -> list[np.ndarray]:
    """Three JPEG files."""
    smooth = [cv2.GaussianBlur(image, (0, 0), 3) for image in images()]
    return [cv2.imencode(".jpg", image)[1].reshape(-1) for image in smooth]


def video_files() -> list[np.ndarray]:
    """Three encoded videos."""
    a, b = (np.fromfile(VIDEOS / f"{name}.webm", np.uint8) for name in "ab")
    return [a, b, a]


@functools.cache
def wave_files() -> list[np.ndarray]:
    """Three WAV files, stereo."""
    found = []
    for clip in clips():
        file = io.BytesIO()
        pcm = (np.clip(clip, -3, 3) * 8000).astype("<i2")
        with wave.open(file, "wb") as writer:
            writer.setnchannels(2)
            writer.setsampwidth(2)
            writer.setframerate(16000)
            writer.writeframes(np.stack([pcm, pcm[::-1]], axis=1).tobytes())
        found.append(np.frombuffer(file.getvalue(), np.uint8).copy())
    return found


def spectra() -> list[np.ndarray]:
    """Three power spectra, ft."""
    draw = _random(4)
    return [np.abs(draw.normal(size=(129, n))).astype(np.float32) for n in (9, 5, 7)]


def arrays_in_files() -> np.ndarray:
    file = io.BytesIO()
    np.save(file, np.arange(6, dtype=np.int16).reshape(2, 3))
    return np.frombuffer(file.getvalue(), np.uint8)


def masks() -> list[np.ndarray]:
    """Three masks of three classes, HW."""
    return [_random(5 + k).integers(0, 3, (6 + k, 8 - k), dtype=np.int32) for k in range(3)]


def boxes() -> list[np.ndarray]:
    """One to three boxes, ltrb between 0 and 1."""
    found = np.float32([[0.1, 0.1, 0.4, 0.4], [0.5, 0.45, 0.9, 0.9], [0.05, 0.6, 0.3, 0.95]])
    return [found[: k + 1] for k in range(3)]


def labels() -> list[np.ndarray]:
    """A label for each of `boxes`."""
    return [np.arange(7, 8 + k, dtype=np.int32) for k in range(3)]


def volumes() -> list[np.ndarray]:
    """Three volumes, DHWC."""
    draw = _random(8)
    shapes = ((3, 10, 12, 1), (2, 8, 9, 1), (4, 6, 5, 1))
    return [draw.integers(0, 256, shape, dtype=np.uint8) for shape in shapes]


def floats() -> list[np.ndarray]:
    """The images as float32, with values beyond those of uint8."""
    return [(image.astype(np.float32) - 20) * 1.25 for image in images()]
