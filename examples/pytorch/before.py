"""Before: a `Dataset`, torchvision transforms and a `DataLoader`.

    hatch run example-pytorch-before

See `after` for the same input as a pipeline.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset

from examples.demo.photographs import write_dataset

try:
    from torchvision import transforms
except (ImportError, RuntimeError):  # not installed, or built for another PyTorch
    from examples.pytorch import pil_transforms as transforms

MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]


class Photographs(Dataset):
    """Images and labels of a folder with one sub-folder for each class."""

    def __init__(self, root: Path) -> None:
        classes = sorted(p.name for p in root.iterdir())
        self.items = [
            (path, label)
            for label, name in enumerate(classes)
            for path in sorted((root / name).glob("*.jpg"))
        ]
        self.transform = transforms.Compose(
            [
                transforms.RandomResizedCrop(224),
                transforms.RandomHorizontalFlip(),
                transforms.ToTensor(),
                transforms.Normalize(MEAN, STD),
            ]
        )

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        path, label = self.items[index]
        with Image.open(path) as image:
            return self.transform(image.convert("RGB")), label


def main() -> None:
    """Iterate over the data and print how fast it comes."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--folder", type=Path, default=Path("demo-data/train"))
    parser.add_argument("--images", type=int, default=960, help="number of images")
    parser.add_argument("--epochs", type=int, default=2)
    args = parser.parse_args()
    dataset = Photographs(write_dataset(args.folder, args.images, seed=1))
    loader = DataLoader(dataset, batch_size=32, shuffle=True, num_workers=2)
    for epoch in range(args.epochs):
        start, count = time.perf_counter(), 0
        for images, labels in loader:
            assert images.shape[1:] == (3, 224, 224)
            assert labels.shape == images.shape[:1]
            count += len(images)
        rate = count / (time.perf_counter() - start)
        print(f"before, epoch {epoch}: {count} images, {rate:,.0f} samples/s")


if __name__ == "__main__":
    main()
