"""Train a classifier on a folder of images: `before` with two imports changed, and the loader.

hatch run torchvision:after
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import torch
from torch import nn
from torchvision.datasets import ImageFolder

from examples.demo.photographs import write_dataset
from examples.demo.train import network
from headrace.experimental.torchvision import to_loader, v2

MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]


def transforms(train, size):
    """The pixels of an image as the network sees them."""
    first = [v2.Resize(size * 8 // 7), v2.CenterCrop(size)]
    if train:
        first = [
            v2.RandomResizedCrop(size, scale=(0.3, 1.0)),
            v2.RandomHorizontalFlip(),
            v2.ColorJitter(brightness=0.2, contrast=0.2, saturation=0.2),
        ]
    to_floats = [v2.PILToTensor(), v2.ToDtype(torch.float32, scale=True), v2.Normalize(MEAN, STD)]
    return v2.Compose([*first, *to_floats])


def loader(root, transform, args, **options):
    """Batches of a folder with a sub-folder for each class."""
    more = {"batch_size": 32, "num_workers": args.workers, **options}
    return to_loader(ImageFolder(root), transform, **more)


def accuracy(model, batches):
    """Part of the images whose class the network tells."""
    model.eval()
    with torch.inference_mode():
        right = [(model(images).argmax(1) == labels).float() for images, labels in batches]
    model.train()
    return float(torch.cat(right).mean())


def main():
    """Train and report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path("demo-data"))
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--images", type=int, default=960, help="number of training images")
    parser.add_argument("--size", type=int, default=112, help="extent of an input, in pixels")
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    root = write_dataset(args.folder / "train", args.images, seed=1)
    others = write_dataset(args.folder / "validation", args.images // 5, seed=2)
    training = loader(root, transforms(True, args.size), args, shuffle=True, drop_last=True)
    validation = loader(others, transforms(False, args.size), args)
    model = network(classes=len(training.dataset.classes))
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for epoch in range(args.epochs):
        start, waited = time.perf_counter(), 0.0
        asked = start
        for images, labels in training:
            waited += time.perf_counter() - asked
            loss = nn.functional.cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            asked = time.perf_counter()
        seconds = time.perf_counter() - start
        print(
            f"epoch {epoch}: loss {loss.item():.3f}, {seconds:.2f} s, of these {waited:.2f} s "
            f"waiting for images, validation {accuracy(model, validation):.1%}"
        )


if __name__ == "__main__":
    main()
