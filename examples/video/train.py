"""Train a small network to tell which way something moves: random clips of videos on any machine.

    python -m examples.video.clips
    python -m examples.video.train

Each epoch reads a random clip of eight frames of each video, at twelve frames a second whatever the
rate of the file; validation reads one from the middle. With `--device gpu` the GPU decodes.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import torch
from torch import nn

from headrace import fn, pipeline_def, types
from headrace.plugin.pytorch import DALIGenericIterator, LastBatchPolicy

LENGTH, SIDE = 8, 48


@pipeline_def(num_threads=2, seed=7)
def clips(root: str, device: str, *, training: bool) -> Any:
    """Clips as planes of floats, and their labels."""
    video, label = fn.readers.video_resize(
        device=device,
        file_root=root,
        sequence_length=LENGTH,
        fps=12.0,
        clips_per_video=1,
        clip_starts="random" if training else "uniform",
        size=[SIDE, SIDE],
        random_shuffle=training,
        name="reader",
    )
    if training:
        video = fn.brightness_contrast(video, brightness=fn.random.uniform(range=[0.7, 1.3]))
    video = fn.crop_mirror_normalize(
        video, dtype=types.FLOAT, output_layout="CFHW", mean=[100.0], std=[60.0]
    )
    return video, label


def network() -> nn.Module:
    """Three layers of convolutions in space and time."""
    layers: list[nn.Module] = []
    for before, after in ((3, 16), (16, 32), (32, 64)):
        layers += [
            nn.Conv3d(before, after, 3, stride=(1, 2, 2), padding=1),
            nn.BatchNorm3d(after),
            nn.ReLU(),
        ]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool3d(1), nn.Flatten(), nn.Linear(64, 4))


def accuracy(model: nn.Module, batches: Any, device: torch.device) -> float:
    """Share of clips that are told right."""
    right = total = 0
    model.eval()
    with torch.no_grad():
        for (batch,) in batches:
            found = model(batch["video"].to(device)).argmax(1).cpu()
            labels = batch["label"].cpu().ravel()
            right, total = right + int((found == labels).sum()), total + len(labels)
    return right / total


def main() -> None:
    """Train, and print the accuracy of each epoch."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path("clips"))
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--device", choices=("cpu", "gpu"), default="cpu")
    args = parser.parse_args()
    torch.manual_seed(1)
    where = torch.device("cuda" if args.device == "gpu" else "cpu")
    device_id = 0 if args.device == "gpu" else None

    def batches(part: str) -> Any:
        pipe = clips(
            *(str(args.folder / part), args.device),
            training=part == "train",
            batch_size=args.batch_size,
            device_id=device_id,
        )
        return DALIGenericIterator(
            pipe,
            ["video", "label"],
            reader_name="reader",
            auto_reset=True,
            last_batch_policy=LastBatchPolicy.PARTIAL,
        )

    training, validation = batches("train"), batches("validation")
    model = network().to(where)
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    for epoch in range(args.epochs):
        model.train()
        for (batch,) in training:
            labels = batch["label"].ravel().long().to(where)
            loss = nn.functional.cross_entropy(model(batch["video"].to(where)), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        share = accuracy(model, validation, where)
        print(f"epoch {epoch + 1}/{args.epochs}  loss {loss.item():.3f}  validation {share:.1%}")


if __name__ == "__main__":
    main()
