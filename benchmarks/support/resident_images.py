"""Data sets for the benchmarks on the GPU: files for long epochs, and images in its memory."""

from __future__ import annotations

import itertools
import os
import shutil
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import simplejpeg


def repeated(root: Path, folder: Path, count: int) -> Path:
    """A data set of `count` files in `folder`, the JPEGs below `root` over and over.

    They are links, so that they take no room, in memory neither. Class folders are kept.
    """
    sources = []
    for path in sorted(root.glob("*/*.jpg")):
        target = folder / "once" / path.parent.name / path.name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
        sources.append(target)
    for number, source in zip(range(count), itertools.cycle(sources), strict=False):
        target = folder / "repeated" / source.parent.name / f"{number:06}.jpg"
        target.parent.mkdir(parents=True, exist_ok=True)
        os.link(source, target)
    return folder / "repeated"


def decoded(root: Path, count: int, extent: tuple[int, int] = (375, 500)) -> np.ndarray:
    """The first `count` JPEGs below `root`, repeated if need be, uint8 ``(count, H, W, 3)``."""
    paths = itertools.islice(itertools.cycle(sorted(root.glob("*/*.jpg"))), count)
    size = extent[::-1]
    found = [
        cv2.resize(simplejpeg.decode_jpeg(p.read_bytes()), size, interpolation=cv2.INTER_AREA)
        for p in paths
    ]
    return np.stack(found)


def resident_batches(images: np.ndarray, batches: int, *, ragged: bool) -> list[Any]:
    """`batches` different CuPy batches in device memory.

    One array each; if `ragged`, a list of arrays of different sizes, each cut from its image.
    """
    import cupy

    found: list[Any] = []
    for number in range(batches):
        batch = np.roll(images, number, axis=0)
        found.append(_pieces(cupy, batch) if ragged else cupy.asarray(batch))
    cupy.cuda.Device().synchronize()
    return found


def _pieces(cupy: Any, batch: np.ndarray) -> list[Any]:
    rng = np.random.default_rng(0)
    pieces = []
    for image in batch:
        height, width = (int(extent * rng.uniform(0.6, 1.0)) for extent in image.shape[:2])
        pieces.append(cupy.asarray(np.ascontiguousarray(image[:height, :width])))
    return pieces
