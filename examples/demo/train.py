"""Train a small network on JPEG files: the main job, in one page.

    hatch run demo

makes a data set of photographs, trains for a few epochs with a progress bar, prints samples per
second and validation accuracy, and writes ``contact_sheet.png``: one augmented batch as the network
sees it. The network of the best epoch is what remains.
"""

from __future__ import annotations

import argparse
import copy
import itertools
import time
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from torch import nn

import headrace
from examples.demo.photographs import write_dataset
from headrace import fn, pipeline_def, types
from headrace.plugin.pytorch import DALIGenericIterator, LastBatchPolicy

MEAN, STD = [123.675, 116.28, 103.53], [58.395, 57.12, 57.375]


@pipeline_def(device_id=None, seed=42)
def training_pipeline(root: str, size: int) -> Any:
    """Decode a random part of each image, resize, mirror at random, normalise."""
    jpegs, labels = fn.readers.file(file_root=root, random_shuffle=True, name="reader")
    images = fn.decoders.image_random_crop(jpegs, random_area=[0.3, 1.0])
    images = fn.resize(images, resize_x=size, resize_y=size)
    images = fn.crop_mirror_normalize(
        images,
        dtype=types.FLOAT,
        output_layout="CHW",
        mean=MEAN,
        std=STD,
        mirror=fn.random.coin_flip(),
    )
    return images, labels


@pipeline_def(device_id=None)
def validation_pipeline(root: str, size: int) -> Any:
    """Decode, resize the shorter side, cut out the centre, normalise."""
    jpegs, labels = fn.readers.file(file_root=root, name="reader")
    images = fn.resize(fn.decoders.image(jpegs), resize_shorter=size * 8 // 7)
    images = fn.crop_mirror_normalize(
        images, dtype=types.FLOAT, output_layout="CHW", crop=(size, size), mean=MEAN, std=STD
    )
    return images, labels


def loader(pipeline: Any) -> DALIGenericIterator:
    """Batches of a pipeline as dictionaries of tensors; an epoch shows each file once."""
    return DALIGenericIterator(
        pipeline,
        ["image", "label"],
        reader_name="reader",
        last_batch_policy=LastBatchPolicy.PARTIAL,
        auto_reset=True,
    )


def network(classes: int) -> nn.Module:
    """A convolutional network of 100,000 parameters."""
    widths = [3, 16, 32, 64, 96]
    layers: list[nn.Module] = []
    for fan_in, fan_out in itertools.pairwise(widths):
        layers += [
            nn.Conv2d(fan_in, fan_out, 3, stride=2, padding=1, bias=False),
            nn.BatchNorm2d(fan_out),
            nn.ReLU(inplace=True),
        ]
    return nn.Sequential(
        *layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(widths[-1], classes)
    )


def accuracy(model: nn.Module, batches: DALIGenericIterator) -> float:
    """Fraction of images whose class the network tells."""
    model.eval()
    right = total = 0
    with torch.inference_mode():
        for (batch,) in batches:
            labels = batch["label"].squeeze(-1).long()
            right += int((model(batch["image"]).argmax(1) == labels).sum())
            total += len(labels)
    model.train()
    return right / total


def main() -> None:
    """Make the data, train, report."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--folder", type=Path, default=Path("demo-data"))
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--images", type=int, default=960, help="number of training images")
    parser.add_argument("--size", type=int, default=112, help="extent of an input, in pixels")
    parser.add_argument("--batch-size", type=int, default=32)
    args = parser.parse_args()
    console = Console()
    torch.manual_seed(0)

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    for_validation = args.images // 5
    with Progress(*columns, console=console) as progress:
        total = args.images + for_validation
        task = progress.add_task("cutting photographs", total=total)
        train_root, val_root = (
            write_dataset(
                args.folder / name, count, seed=seed, on_written=lambda: progress.advance(task)
            )
            for name, count, seed in (("train", args.images, 1), ("val", for_validation, 2))
        )
        progress.update(task, completed=total)  # those that were there already
    names = sorted(p.name for p in train_root.iterdir())

    train = loader(training_pipeline(str(train_root), args.size, batch_size=args.batch_size))
    val = loader(validation_pipeline(str(val_root), args.size, batch_size=args.batch_size))
    model = network(len(names))
    optimiser = torch.optim.AdamW(model.parameters())
    # The rate falls to nothing towards the end, so that the last epochs settle.
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimiser, max_lr=5e-3, total_steps=args.epochs * len(train)
    )
    best, best_weights = -1.0, model.state_dict()
    loss_of = nn.CrossEntropyLoss()
    sheet = args.folder / "contact_sheet.png"

    with Progress(*columns, console=console) as progress:
        task = progress.add_task("training", total=args.epochs * len(train))
        for epoch in range(args.epochs):
            samples, start = 0, time.perf_counter()
            for number, (batch,) in enumerate(train):
                if epoch == number == 0:
                    labels = [names[k] for k in batch["label"].flatten().tolist()]
                    headrace.show(batch["image"], sheet, labels=labels, size=args.size)
                loss = loss_of(model(batch["image"]), batch["label"].squeeze(-1).long())
                optimiser.zero_grad()
                loss.backward()
                optimiser.step()
                schedule.step()
                samples += len(batch["image"])
                progress.advance(task)
            rate = samples / (time.perf_counter() - start)
            reached = accuracy(model, val)
            if reached >= best:
                best, best_weights = reached, copy.deepcopy(model.state_dict())
            console.print(
                f"epoch {epoch + 1}/{args.epochs}  loss {loss.item():.3f}  "
                f"{rate:,.0f} samples/s  validation {reached:.1%}"
            )
    model.load_state_dict(best_weights)

    pipeline_only = time.perf_counter()
    count = sum(len(batch["image"]) for (batch,) in train)
    rate = count / (time.perf_counter() - pipeline_only)
    console.print(f"The pipeline alone, without the network: [bold]{rate:,.0f} samples/s[/]")
    console.print(f"Validation accuracy: [bold]{accuracy(model, val):.1%}[/]")
    console.print(f"One augmented batch, as the network sees it: [bold]{sheet}[/]")


if __name__ == "__main__":
    main()
