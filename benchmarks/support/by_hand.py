"""What a careful user writes without a pipeline library: a thread pool over simplejpeg, OpenCV and
NumPy.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import simplejpeg

MEAN = np.array([123.675, 116.28, 103.53], np.float32)
STD = np.array([58.395, 57.12, 57.375], np.float32)


def normalised(image: np.ndarray, mirror: bool, out: np.ndarray) -> None:
    """Write `image` (uint8 HWC), normalised, into `out` (float32 CHW)."""
    if mirror:
        image = image[:, ::-1]
    for channel in range(3):
        np.multiply(image[..., channel], 1 / STD[channel], out=out[channel], dtype=np.float32)
        out[channel] -= MEAN[channel] / STD[channel]


def train(path: Path, out: np.ndarray, rng: np.random.Generator) -> None:
    """Decode, random resized crop to 224, random mirror, normalise."""
    image = simplejpeg.decode_jpeg(path.read_bytes())
    height, width = image.shape[:2]
    for _ in range(10):
        area = height * width * rng.uniform(0.08, 1.0)
        ratio = np.exp(rng.uniform(np.log(3 / 4), np.log(4 / 3)))
        w, h = round(np.sqrt(area * ratio)), round(np.sqrt(area / ratio))
        if 0 < w <= width and 0 < h <= height:
            break
    else:
        w = h = min(height, width)
    y, x = rng.integers(0, height - h + 1), rng.integers(0, width - w + 1)
    interpolation = cv2.INTER_AREA if w > 224 and h > 224 else cv2.INTER_LINEAR
    image = cv2.resize(image[y : y + h, x : x + w], (224, 224), interpolation=interpolation)
    normalised(image, bool(rng.integers(2)), out)


def validate(path: Path, out: np.ndarray, rng: np.random.Generator) -> None:
    """Decode, resize to 256x256, centre crop 224, normalise."""
    image = simplejpeg.decode_jpeg(path.read_bytes())
    image = cv2.resize(image, (256, 256), interpolation=cv2.INTER_AREA)
    normalised(image[16:240, 16:240], False, out)


def augment(image: np.ndarray, out: np.ndarray, rng: np.random.Generator) -> None:
    """Rotate, change brightness and contrast, blur, normalise."""
    height, width = image.shape[:2]
    matrix = cv2.getRotationMatrix2D((width / 2, height / 2), rng.uniform(-30, 30), 1)
    image = cv2.warpAffine(image, matrix, (width, height))
    contrast, brightness = rng.uniform(0.7, 1.3), rng.uniform(0.7, 1.3)
    scale = brightness * contrast
    image = cv2.convertScaleAbs(image, alpha=scale, beta=brightness * 128 * (1 - contrast))
    image = cv2.GaussianBlur(image, (0, 0), 1.5)
    normalised(image, False, out)


class Pool:
    """Batches by a thread pool that works two batches ahead, as long as it is asked."""

    def __init__(
        self,
        work: Callable[[Any, np.ndarray, np.random.Generator], None],
        items: Iterator[Any],
        shape: tuple[int, ...],
        batch_size: int,
        threads: int,
    ) -> None:
        cv2.setNumThreads(1)
        self._work, self._items = work, items
        self._shape, self._batch_size = (batch_size, *shape), batch_size
        self._pool = ThreadPoolExecutor(threads)
        self._seeds = np.random.SeedSequence(0)
        self._ahead: deque[tuple[np.ndarray, list[Future[None]]]] = deque()
        for _ in range(2):
            self._start()

    def _start(self) -> None:
        out = np.empty(self._shape, np.float32)
        rngs = [np.random.default_rng(s) for s in self._seeds.spawn(self._batch_size)]
        futures = [
            self._pool.submit(self._work, next(self._items), out[k], rngs[k])
            for k in range(self._batch_size)
        ]
        self._ahead.append((out, futures))

    def batch(self) -> np.ndarray:
        """The next batch."""
        self._start()
        out, futures = self._ahead.popleft()
        for future in futures:
            future.result()
        return out

    def close(self) -> None:
        """Stop the threads."""
        self._pool.shutdown(cancel_futures=True)
