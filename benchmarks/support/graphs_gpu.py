"""The pipelines that are measured on the GPU, written once for both libraries."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from benchmarks.support.graphs import MEAN, STD


def _reader(lib: Any, root: str, **shard: int) -> tuple[Any, Any]:
    jpegs, labels = lib.fn.readers.file(file_root=root, random_shuffle=True, name="reader", **shard)
    return jpegs, labels


def _normalised(lib: Any, images: Any, dtype: str, **more: Any) -> Any:
    """Mirrored at random, normalised, channels first: what a network takes."""
    return lib.fn.crop_mirror_normalize(
        images,
        dtype=getattr(lib.types, dtype),
        output_layout="CHW",
        mean=MEAN,
        std=STD,
        mirror=lib.fn.random.coin_flip(),
        **more,
    )


def train(
    lib: Any, root: str, *, dtype: str = "FLOAT16", decoder: str = "mixed", **shard: int
) -> Any:
    """Files, decode, random resized crop 224, mirror, normalise.

    With `decoder` ``"mixed"`` images are decoded on the GPU; with ``"cpu"`` on the CPU, then
    uploaded.
    """
    jpegs, labels = _reader(lib, root, **shard)
    images = lib.fn.decoders.image(jpegs, device=decoder)
    if decoder == "cpu":
        images = images.gpu()
    images = lib.fn.random_resized_crop(images, size=(224, 224))
    return _normalised(lib, images, dtype), labels.gpu()


def train_crop(lib: Any, root: str, *, dtype: str = "FLOAT16", **shard: int) -> Any:
    """Files, decode of a random crop on the GPU, resize 224, mirror, normalise."""
    jpegs, labels = _reader(lib, root, **shard)
    images = lib.fn.decoders.image_random_crop(jpegs, device="mixed", random_area=[0.08, 1.0])
    images = lib.fn.resize(images, resize_x=224, resize_y=224)
    return _normalised(lib, images, dtype), labels.gpu()


def validate(lib: Any, root: str, *, dtype: str = "FLOAT16") -> Any:
    """Files, decode on the GPU, resize 256, centre crop 224, normalise."""
    jpegs, labels = _reader(lib, root)
    images = lib.fn.resize(lib.fn.decoders.image(jpegs, device="mixed"), resize_shorter=256)
    images = lib.fn.crop_mirror_normalize(
        images,
        dtype=getattr(lib.types, dtype),
        output_layout="CHW",
        crop=(224, 224),
        mean=MEAN,
        std=STD,
    )
    return images, labels.gpu()


def train_augment(lib: Any, root: str, *, dtype: str = "FLOAT16") -> Any:
    """Files, decode on the CPU, upload, random resized crop 224, all augmentations, normalise."""
    jpegs, labels = _reader(lib, root)
    images = lib.fn.decoders.image(jpegs, device="cpu").gpu()
    images = lib.fn.random_resized_crop(images, size=(224, 224))
    return _normalised(lib, _augmented(lib, images), dtype), labels.gpu()


def _augmented(lib: Any, images: Any) -> Any:
    fn = lib.fn
    images = fn.rotate(images, angle=fn.random.uniform(range=[-30, 30]), keep_size=True)
    images = fn.brightness_contrast(
        images,
        brightness=fn.random.uniform(range=[0.7, 1.3]),
        contrast=fn.random.uniform(range=[0.7, 1.3]),
    )
    return fn.gaussian_blur(images, sigma=1.5)


def _resident(lib: Any, batches: Sequence[Any]) -> Any:
    """Batches that are on the GPU already, in turn, without a copy."""
    turn = itertools.cycle(batches)
    return lib.fn.external_source(
        source=lambda: next(turn), device="gpu", layout="HWC", no_copy=True
    )


def augment(lib: Any, batches: Sequence[Any], *, dtype: str = "FLOAT16") -> Any:
    """Rotate, brightness and contrast, blur, resize 224, mirror, normalise of images on the GPU."""
    images = _augmented(lib, _resident(lib, batches))
    images = lib.fn.resize(images, resize_x=224, resize_y=224)
    return (_normalised(lib, images, dtype),)


def light(lib: Any, batches: Sequence[Any], *, dtype: str = "FLOAT16") -> Any:
    """Resize 224, mirror, normalise of images on the GPU."""
    images = lib.fn.resize(_resident(lib, batches), resize_x=224, resize_y=224)
    return (_normalised(lib, images, dtype),)


def three_operators(lib: Any, batches: Sequence[Any]) -> Any:
    """Crop, rotate, colours with a drawn saturation, of images on the GPU."""
    images = lib.fn.crop(_resident(lib, batches), crop=(200, 200))
    images = lib.fn.rotate(images, angle=30.0, keep_size=True)
    saturation = lib.fn.random.uniform(range=[0.5, 1.5])
    return (lib.fn.color_twist(images, saturation=saturation),)


def uploaded(lib: Any, batches: Sequence[Any]) -> Any:
    """Upload of NumPy batches, crop, rotate by a drawn angle, normalise."""
    turn = itertools.cycle(batches)
    images = lib.fn.external_source(source=lambda: next(turn), layout="HWC", no_copy=True).gpu()
    images = lib.fn.crop(images, crop=(200, 200))
    images = lib.fn.rotate(images, angle=lib.fn.random.uniform(range=[-30, 30]), keep_size=True)
    return (
        lib.fn.crop_mirror_normalize(
            images, dtype=lib.types.FLOAT, output_layout="CHW", mean=MEAN, std=STD
        ),
    )
