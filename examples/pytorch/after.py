"""After: the same input as a pipeline.

    hatch run example-pytorch-after
    hatch run example-pytorch-after --source external

What changed with respect to `before`:

===========================  ======================================================================
before                       after
===========================  ======================================================================
``Dataset``                  ``fn.readers.file``; or, to keep the code that finds the samples, a
                             callable given to ``fn.external_source`` that returns encoded bytes
``RandomResizedCrop``        ``fn.decoders.image_random_crop`` (decodes only that), ``fn.resize``
``RandomHorizontalFlip``     ``mirror=fn.random.coin_flip()``
``ToTensor``, ``Normalize``  ``fn.crop_mirror_normalize``; mean and standard deviation in levels
``DataLoader``               ``DALIGenericIterator``: no worker processes, no collation, no copy
===========================  ======================================================================
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np

from examples.demo.photographs import write_dataset
from headrace import fn, pipeline_def, types
from headrace.plugin.pytorch import DALIGenericIterator, LastBatchPolicy

MEAN = [0.485 * 255, 0.456 * 255, 0.406 * 255]
STD = [0.229 * 255, 0.224 * 255, 0.225 * 255]


class Photographs:
    """The `Dataset` of `before`, without the decoding: sample by sample, bytes and label."""

    def __init__(self, root: Path) -> None:
        classes = sorted(p.name for p in root.iterdir())
        self.items = [
            (path, label)
            for label, name in enumerate(classes)
            for path in sorted((root / name).glob("*.jpg"))
        ]

    def __len__(self) -> int:
        return len(self.items)

    def __call__(self, info: types.SampleInfo) -> tuple[np.ndarray, np.ndarray]:
        if info.idx_in_epoch >= len(self.items):
            raise StopIteration
        # A new order in each epoch, the same in each run.
        order = np.random.default_rng(info.epoch_idx).permutation(len(self.items))
        path, label = self.items[order[info.idx_in_epoch]]
        return np.fromfile(path, np.uint8), np.array([label], np.int32)


def images_from(encoded: Any) -> Any:
    """Decode, augment and normalise."""
    images = fn.decoders.image_random_crop(encoded)
    images = fn.resize(images, size=(224, 224))
    return fn.crop_mirror_normalize(
        images, dtype=types.FLOAT, output_layout="CHW", mean=MEAN, std=STD,
        mirror=fn.random.coin_flip(),
    )  # fmt: skip


@pipeline_def(batch_size=32, num_threads=2, device_id=None, seed=1)
def from_reader(root: Path) -> Any:
    """Samples from a reader."""
    encoded, labels = fn.readers.file(file_root=root, random_shuffle=True, name="reader")
    return images_from(encoded), labels


@pipeline_def(batch_size=32, num_threads=2, device_id=None, seed=1)
def from_callable(source: Photographs) -> Any:
    """Samples from Python code."""
    encoded, labels = fn.external_source(source=source, num_outputs=2, batch=False)
    return images_from(encoded), labels


def main() -> None:
    """Iterate over the data and print how fast it comes."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--source", choices=["reader", "external"], default="reader")
    parser.add_argument("--folder", type=Path, default=Path("demo-data/train"))
    parser.add_argument("--images", type=int, default=960, help="number of images")
    parser.add_argument("--epochs", type=int, default=2)
    args = parser.parse_args()
    root = write_dataset(args.folder, args.images, seed=1)
    names = ["image", "label"]
    if args.source == "reader":
        loader = DALIGenericIterator(
            from_reader(root),
            names,
            reader_name="reader",
            last_batch_policy=LastBatchPolicy.PARTIAL,
            auto_reset=True,
        )
    else:
        loader = DALIGenericIterator(from_callable(Photographs(root)), names, auto_reset=True)
    for epoch in range(args.epochs):
        start, count = time.perf_counter(), 0
        for (batch,) in loader:
            assert batch["image"].shape[1:] == (3, 224, 224)
            count += len(batch["image"])
        rate = count / (time.perf_counter() - start)
        print(f"after ({args.source}), epoch {epoch}: {count} images, {rate:,.0f} samples/s")


if __name__ == "__main__":
    main()
