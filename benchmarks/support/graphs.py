"""The pipelines that are measured, written once for both libraries."""

from __future__ import annotations

from typing import Any

import numpy as np

MEAN, STD = [123.675, 116.28, 103.53], [58.395, 57.12, 57.375]


def _reader(lib: Any, root: str) -> tuple[Any, Any]:
    jpegs, labels = lib.fn.readers.file(file_root=root, random_shuffle=True, name="reader")
    return jpegs, labels


def train(lib: Any, root: str) -> tuple[Any, ...]:
    """Decode of a random crop, resize to 224x224, random mirror, normalise."""
    fn, types = lib.fn, lib.types
    jpegs, labels = _reader(lib, root)
    images = fn.decoders.image_random_crop(jpegs, random_area=[0.08, 1.0])
    images = fn.resize(images, resize_x=224, resize_y=224)
    images = fn.crop_mirror_normalize(
        images,
        dtype=types.FLOAT,
        output_layout="CHW",
        mean=MEAN,
        std=STD,
        mirror=fn.random.coin_flip(),
    )
    return images, labels


def validate(lib: Any, root: str) -> tuple[Any, ...]:
    """Decode, resize to 256x256, centre crop 224, normalise."""
    fn, types = lib.fn, lib.types
    jpegs, labels = _reader(lib, root)
    images = fn.resize(fn.decoders.image(jpegs), resize_x=256, resize_y=256)
    images = fn.crop_mirror_normalize(
        images, dtype=types.FLOAT, output_layout="CHW", crop=(224, 224), mean=MEAN, std=STD
    )
    return images, labels


def small(lib: Any, root: str) -> tuple[Any, ...]:
    """Decode grey digits of 28x28 pixels, normalise: next to no work for a sample."""
    fn, types = lib.fn, lib.types
    jpegs, labels = _reader(lib, root)
    images = fn.decoders.image(jpegs, output_type=types.GRAY)
    images = fn.crop_mirror_normalize(images, dtype=types.FLOAT, mean=[33.3], std=[78.6])
    return images, labels


def augment(lib: Any, batch: np.ndarray) -> tuple[Any, ...]:
    """Rotate, brightness and contrast, Gaussian blur, normalise of decoded images."""
    fn, types = lib.fn, lib.types
    images = fn.external_source(source=lambda: batch, layout="HWC", no_copy=True)
    images = fn.rotate(images, angle=fn.random.uniform(range=[-30, 30]), keep_size=True)
    images = fn.brightness_contrast(
        images,
        brightness=fn.random.uniform(range=[0.7, 1.3]),
        contrast=fn.random.uniform(range=[0.7, 1.3]),
    )
    images = fn.gaussian_blur(images, sigma=1.5)
    images = fn.crop_mirror_normalize(
        images, dtype=types.FLOAT, output_layout="CHW", mean=MEAN, std=STD
    )
    return (images,)
