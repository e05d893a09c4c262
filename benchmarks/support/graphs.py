"""The pipelines that are measured, written once for both libraries."""

from __future__ import annotations

from collections.abc import Callable
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


def single_operators() -> dict[str, Callable[[Any, Any], Any]]:
    """Graphs of one operator on decoded images, by the operator's name."""
    return {
        "resize": lambda lib, x: lib.fn.resize(x, resize_x=224, resize_y=224),
        "resize (cubic)": lambda lib, x: lib.fn.resize(
            x, resize_x=224, resize_y=224, interp_type=lib.types.INTERP_CUBIC
        ),
        "random_resized_crop": lambda lib, x: lib.fn.random_resized_crop(x, size=(128, 128)),
        "crop": lambda lib, x: lib.fn.crop(x, crop=(224, 224)),
        "slice": lambda lib, x: lib.fn.slice(x, start=(16, 16), shape=(224, 224)),
        "flip": lambda lib, x: lib.fn.flip(x, horizontal=1),
        "rotate": lambda lib, x: lib.fn.rotate(x, angle=20, keep_size=True),
        "warp_affine": lambda lib, x: lib.fn.warp_affine(
            x, lib.fn.transforms.rotation(angle=lib.fn.random.uniform(range=(-30, 30)))
        ),
        "crop_mirror_normalize": lambda lib, x: lib.fn.crop_mirror_normalize(
            x, dtype=lib.types.FLOAT, crop=(224, 224), mean=MEAN, std=STD, mirror=1
        ),
        "normalize": lambda lib, x: lib.fn.normalize(x, axes=(0, 1)),
        "brightness_contrast": lambda lib, x: lib.fn.brightness_contrast(
            x, brightness=1.2, contrast=0.8
        ),
        "color_twist": lambda lib, x: lib.fn.color_twist(
            x, hue=20.0, saturation=1.3, brightness=1.2, contrast=0.8
        ),
        "color_space_conversion": lambda lib, x: lib.fn.color_space_conversion(
            x, image_type=lib.types.RGB, output_type=lib.types.YCbCr
        ),
        "color_space_conversion (grey)": lambda lib, x: lib.fn.color_space_conversion(
            x, image_type=lib.types.RGB, output_type=lib.types.GRAY
        ),
        "gaussian_blur": lambda lib, x: lib.fn.gaussian_blur(x, sigma=1.5),
        "cast": lambda lib, x: lib.fn.cast(x, dtype=lib.types.FLOAT),
        "reshape": lambda lib, x: lib.fn.reshape(x, shape=[-1, 3], layout="WC"),
        "transpose": lambda lib, x: lib.fn.transpose(x, perm=[2, 0, 1]),
        "copy": lambda lib, x: lib.fn.copy(x),
        "arithmetic": lambda lib, x: x * 1.5 + 3.0,
        "comparison": lambda lib, x: x > 100,
    }


def single_decoders() -> dict[str, Callable[[Any, Any], Any]]:
    """Graphs of one decoder on encoded images."""
    return {
        "decoders.image": lambda lib, x: lib.fn.decoders.image(x),
        "decoders.image_crop": lambda lib, x: lib.fn.decoders.image_crop(x, crop=(224, 224)),
        "decoders.image_slice": lambda lib, x: lib.fn.decoders.image_slice(
            x, rel_start=(0.2, 0.2), rel_shape=(0.5, 0.5)
        ),
        "decoders.image_random_crop": lambda lib, x: lib.fn.decoders.image_random_crop(x),
        "peek_image_shape": lambda lib, x: lib.fn.peek_image_shape(x),
    }


def generators() -> dict[str, Callable[[Any], Any]]:
    """Graphs of one operator without inputs."""
    return {
        "random.uniform": lambda lib: lib.fn.random.uniform(shape=[100, 100]),
        "random.normal": lambda lib: lib.fn.random.normal(shape=[100, 100]),
        "random.coin_flip": lambda lib: lib.fn.random.coin_flip(shape=[100, 100]),
        "constant": lambda lib: lib.fn.constant(fdata=1.0, shape=[100, 100]),
    }
