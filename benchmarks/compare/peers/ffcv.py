"""FFCV: a file of its own, decoded by compiled loops in threads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.compare import work


def _file(folder: Path) -> str:
    """The JPEGs as they are, in FFCV's file."""
    from ffcv.fields import RGBImageField
    from ffcv.writer import DatasetWriter
    from PIL import Image

    target = folder / "images.beton"
    if not target.exists():

        class Images:
            def __init__(self) -> None:
                self._paths = work.images(folder)

            def __len__(self) -> int:
                return len(self._paths)

            def __getitem__(self, index: int) -> tuple[Any]:
                return (Image.open(self._paths[index]).convert("RGB"),)

        field = RGBImageField(write_mode="jpg", jpeg_quality=90)
        DatasetWriter(str(target), {"image": field}, num_workers=1).from_indexed_dataset(Images())
    return str(target)


def _batches(folder: Path, decoder: Any, *more: Any) -> work.Batches:
    from ffcv.loader import Loader, OrderOption
    from ffcv.transforms import NormalizeImage, ToTensor, ToTorchImage

    normalize = NormalizeImage(np.array(work.MEAN), np.array(work.STD), np.float32)
    count = len(work.images(folder))
    loader = Loader(
        _file(folder),
        batch_size=work.BATCH,
        num_workers=work.WORKERS,
        order=OrderOption.RANDOM,
        # One epoch without an end, as of the others.
        indices=np.tile(np.arange(count), 1000),
        pipelines={"image": [decoder, *more, normalize, ToTensor(), ToTorchImage()]},
    )
    while True:
        for (batch,) in loader:
            yield len(batch)


def _train(folder: Path) -> work.Batches:
    from ffcv.fields.decoders import RandomResizedCropRGBImageDecoder
    from ffcv.transforms import RandomHorizontalFlip

    crop = RandomResizedCropRGBImageDecoder((224, 224), scale=(0.08, 1.0))
    return _batches(folder, crop, RandomHorizontalFlip())


def _validate(folder: Path) -> work.Batches:
    from ffcv.fields.decoders import CenterCropRGBImageDecoder

    return _batches(folder, CenterCropRGBImageDecoder((224, 224), 224 / 256))


_LACKS = "its files hold images, numbers and bytes; it has no decoders of {}"
FFCV = work.Library(
    ("ffcv", "torch", "numba", "opencv-python"),
    {"train": _train, "validate": _validate},
    {
        "augment": "it has neither rotation nor blur",
        "video": _LACKS.format("video"),
        "audio": _LACKS.format("audio"),
    },
    "its own file of the JPEGs, written again at quality 90, and its loader with two threads;"
    " `validate` crops a square before it resizes",
)
