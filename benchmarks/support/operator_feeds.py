"""Typical data that operators are fed: each kind as the samples of a batch, with their layout."""

from __future__ import annotations

import functools
import io
import tempfile
from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np
import soundfile

from examples.demo.photographs import photographs
from examples.dynamic.speech import SAMPLE_RATE, utterance

Rows = list[np.ndarray]

BATCH = 32
HEIGHT, WIDTH = 360, 480
MEL_BANDS, COLUMNS = 80, 100


@functools.cache
def _images(height: int = HEIGHT, width: int = WIDTH) -> Rows:
    """Pieces of photographs, RGB."""
    found = []
    for number, image in zip(range(BATCH), [*photographs().values()] * BATCH, strict=False):
        piece = cv2.resize(image, (width, height), interpolation=cv2.INTER_AREA)
        found.append(np.ascontiguousarray(np.roll(piece, 31 * number, axis=1)))
    return found


@functools.cache
def _clips() -> Rows:
    """A second of generated speech each, float32."""
    clips = [utterance(np.random.default_rng(k), 150.0, 1.5) for k in range(BATCH)]
    return [np.resize(clip, SAMPLE_RATE).astype(np.float32) for clip in clips]


def _sounds(kind: str, subtype: str) -> Rows:
    """The clips as files in memory."""
    files = []
    for clip in _clips():
        target = io.BytesIO()
        soundfile.write(target, clip, SAMPLE_RATE, format=kind, subtype=subtype)
        files.append(np.frombuffer(target.getvalue(), np.uint8))
    return files


def _encoded(suffix: str, *options: int) -> Rows:
    """The images as files in memory."""
    return [cv2.imencode(suffix, image[..., ::-1], options)[1].reshape(-1) for image in _images()]


def _jpegs() -> Rows:
    return _encoded(".jpg", cv2.IMWRITE_JPEG_QUALITY, 90)


def _arrays_in_files() -> Rows:
    found = []
    for image in _images(64, 64):
        target = io.BytesIO()
        np.save(target, image)
        found.append(np.frombuffer(target.getvalue(), np.uint8))
    return found


def _file_names() -> Rows:
    """Names of the JPEG files, which stay until the process ends."""
    folder = tempfile.TemporaryDirectory()
    _KEPT.append(folder)
    names = []
    for number, data in enumerate(_jpegs()):
        path = Path(folder.name) / f"{number}.jpg"
        path.write_bytes(data.tobytes())
        names.append(np.frombuffer(str(path).encode(), np.uint8))
    return names


_KEPT: list[tempfile.TemporaryDirectory[str]] = []


def _uniform(*shape: int) -> Rows:
    return list(np.random.default_rng(0).random((BATCH, *shape), np.float32))


def _integers(low: int, high: int, *shape: int) -> Rows:
    return list(np.random.default_rng(0).integers(low, high, (BATCH, *shape), np.int32))


def _boxes() -> Rows:
    """Left, top, right and bottom of ten boxes, each from 0 to 1."""
    corners = np.random.default_rng(0).random((BATCH, 10, 2, 2), np.float32)
    return list(np.sort(corners, axis=-2).reshape(BATCH, 10, 4))


def _polygons() -> Rows:
    """Mask, first and last vertex of each polygon."""
    return [np.array([[k // 2, 8 * k, 8 * k + 8] for k in range(10)], np.int32)] * BATCH


def _planes(image: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(image.transpose(2, 0, 1))


FEEDS: dict[str, tuple[str, Callable[[], Rows]]] = {
    "images": ("HWC", _images),
    "small images": ("HWC", lambda: _images(32, 32)),
    "middle images": ("HWC", lambda: _images(128, 128)),
    "planar images": ("CHW", lambda: [_planes(image) for image in _images()]),
    "float images": ("HWC", lambda: [x.astype(np.float32) for x in _images(224, 224)]),
    "grey images": ("HW", lambda: [np.ascontiguousarray(x[..., 1]) for x in _images()]),
    "videos": ("FHWC", lambda: [np.stack([x] * 8) for x in _images(64, 64)]),
    "volumes": ("", lambda: _uniform(32, 64, 64)),
    "jpegs": ("", _jpegs),
    "pngs": ("", lambda: _encoded(".png")),
    "bmps": ("", lambda: _encoded(".bmp")),
    "tiffs": ("", lambda: _encoded(".tiff")),
    "webps": ("", lambda: _encoded(".webp", cv2.IMWRITE_WEBP_QUALITY, 80)),
    "jpeg 2000s": ("", lambda: _encoded(".jp2")),
    "arrays in files": ("", _arrays_in_files),
    "file names": ("", _file_names),
    "clips": ("", _clips),
    "WAV": ("", lambda: _sounds("WAV", "PCM_16")),
    "WAV, 24 bits": ("", lambda: _sounds("WAV", "PCM_24")),
    "FLAC": ("", lambda: _sounds("FLAC", "PCM_16")),
    "OGG, Vorbis": ("", lambda: _sounds("OGG", "VORBIS")),
    "OGG, Opus": ("", lambda: _sounds("OGG", "OPUS")),
    "power spectra": ("ft", lambda: _uniform(257, COLUMNS)),
    "mel spectra": ("ft", lambda: _uniform(MEL_BANDS, COLUMNS)),
    "boxes": ("", _boxes),
    "labels of boxes": ("", lambda: [np.arange(10, dtype=np.int32)] * BATCH),
    "vertices": ("", lambda: _uniform(80, 2)),
    "polygons": ("", _polygons),
    "mask numbers": ("", lambda: [np.array([3, 1], np.int32)] * BATCH),
    "masks": ("HW", lambda: _integers(0, 21, 128, 128)),
    "labels": ("", lambda: _integers(0, 10, 1)),
    "numbers": ("", lambda: _uniform()),
    "landmarks": ("", lambda: _uniform(68, 2)),
    "vectors": ("", lambda: _uniform(1000)),
    "affine maps": ("", lambda: [np.array([[0.9, 0.2, 3], [-0.1, 1.1, -4]], np.float32)] * BATCH),
    "perspectives": (
        "",
        lambda: [np.array([[1, 0.1, 3], [0, 1, 2], [0.0001, 0, 1]], np.float32)] * BATCH,
    ),
    "taps": ("", lambda: [np.full((5, 5), 0.04, np.float32)] * BATCH),
    "shapes": ("", lambda: [np.array([HEIGHT, WIDTH], np.int64)] * BATCH),
    "means": ("", lambda: [np.array([[[120, 110, 100]]], np.float32)] * BATCH),
}
"""Of each kind the layout, and what makes a batch."""


@functools.cache
def feed(kind: str) -> tuple[str, Rows]:
    """The layout of a kind, and the samples of a batch."""
    layout, make = FEEDS[kind]
    return layout, make()
