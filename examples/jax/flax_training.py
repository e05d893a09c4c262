"""Train a Flax (nnx) model on photographs, on one device and then on all, with the same losses.

    hatch run jax:flax-training
    hatch run jax:flax-training --images 256 --epochs 1 --plots my-plots

`split_batches` has one pipeline make each batch and split it among the devices. So the number of
devices changes nothing but the speed: not the samples of a batch, not their augmentations, and the
losses only as far as sums in another order differ. Where there is no GPU, the CPU plays eight
devices.
"""

from __future__ import annotations

import argparse
import itertools
import os
import time
from pathlib import Path
from typing import Any

# Before JAX makes its devices. It only matters where the CPU is all there is.
os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=8")

import jax
import matplotlib as mpl
import numpy as np
import optax
from flax import nnx
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from examples.demo.photographs import write_dataset
from headrace import fn, types
from headrace.plugin.jax import LastBatchPolicy, data_iterator

mpl.use("Agg")
from matplotlib import pyplot

MEAN, STD = [123.675, 116.28, 103.53], [58.395, 57.12, 57.375]


class Network(nnx.Module):
    """A small convolutional network."""

    def __init__(self, classes: int, rngs: nnx.Rngs) -> None:
        widths = [3, 16, 32, 64]
        self.convolutions = nnx.List(
            [
                nnx.Conv(fan_in, fan_out, (3, 3), strides=2, rngs=rngs)
                for fan_in, fan_out in itertools.pairwise(widths)
            ]
        )
        self.head = nnx.Linear(widths[-1], classes, rngs=rngs)

    def __call__(self, images: jax.Array) -> jax.Array:
        """Logits ``(samples, classes)`` of images ``(samples, H, W, 3)``."""
        for convolution in self.convolutions:
            images = nnx.relu(convolution(images))
        return self.head(images.mean(axis=(1, 2)))


def batches(root: Path, sharding: NamedSharding, size: int, policy: LastBatchPolicy) -> Any:
    """What makes iterators over the photographs."""

    @data_iterator(
        output_map=["images", "labels"],
        reader_name="reader",
        last_batch_policy=policy,
        sharding=sharding,
        split_batches=True,
    )
    def augmented(training: bool) -> Any:
        jpegs, labels = fn.readers.file(
            file_root=root, random_shuffle=training, pad_last_batch=True, name="reader"
        )
        if training:
            images = fn.decoders.image_random_crop(jpegs, random_area=[0.3, 1.0])
            mirror: Any = fn.random.coin_flip()
        else:
            images, mirror = fn.decoders.image(jpegs), 0
        images = fn.crop_mirror_normalize(
            fn.resize(images, size=(size, size)),
            dtype=types.FLOAT, output_layout="HWC", mean=MEAN, std=STD, mirror=mirror,
        )  # fmt: skip
        return images, labels

    return augmented


@nnx.jit
def train_step(model: Network, optimizer: nnx.Optimizer, batch: dict[str, jax.Array]) -> jax.Array:
    """One step; returns the loss. On several devices JAX adds what they have to exchange."""

    def loss_of(model: Network) -> jax.Array:
        labels = batch["labels"].squeeze(-1)
        losses = optax.softmax_cross_entropy_with_integer_labels(model(batch["images"]), labels)
        return losses.mean()

    loss, gradients = nnx.value_and_grad(loss_of)(model)
    optimizer.update(model, gradients)
    return loss


@nnx.jit
def count_right(model: Network, batch: dict[str, jax.Array]) -> jax.Array:
    """How many images of a batch get their label."""
    return (model(batch["images"]).argmax(axis=-1) == batch["labels"].squeeze(-1)).sum()


def train(
    root: Path, validation: Path, devices: list[jax.Device], options: argparse.Namespace
) -> list[float]:
    """Train on these devices; returns the loss of each step."""
    mesh = Mesh(np.array(devices), ("batch",))
    sharding = NamedSharding(mesh, PartitionSpec("batch"))
    classes = sum(1 for folder in root.iterdir() if folder.is_dir())
    model = Network(classes, nnx.Rngs(0))
    optimizer = nnx.Optimizer(model, optax.adamw(3e-3), wrt=nnx.Param)
    # All devices have the whole model.
    everywhere = NamedSharding(mesh, PartitionSpec())
    nnx.update(model, jax.device_put(nnx.state(model), everywhere))
    nnx.update(optimizer, jax.device_put(nnx.state(optimizer), everywhere))

    settings = {"batch_size": options.batch_size, "seed": 42}
    loader = batches(root, sharding, options.size, LastBatchPolicy.DROP)(True, **settings)
    losses = []
    start = time.perf_counter()
    for _ in range(options.epochs):
        losses += [train_step(model, optimizer, batch) for batch in loader]
    found = [float(loss) for loss in losses]
    seconds = time.perf_counter() - start
    images = len(found) * options.batch_size

    right = total = 0
    held_out = batches(validation, sharding, options.size, LastBatchPolicy.PARTIAL)
    for batch in held_out(False, **settings):  # the last batch is smaller: each image counts once
        right += int(count_right(model, batch))
        total += len(batch["labels"])
    print(
        f"{len(devices)} x {devices[0].platform}: loss {found[0]:.3f} -> {found[-1]:.3f}, "
        f"{images / seconds:,.0f} samples/s (compilation included), "
        f"validation {right}/{total} = {right / total:.1%}"
    )
    return found


def draw(path: Path, curves: dict[str, list[float]]) -> None:
    """Draw the losses to a PNG file."""
    figure, axes = pyplot.subplots(figsize=(7, 4))
    for (name, losses), style in zip(curves.items(), ("-", "--"), strict=False):
        axes.plot(losses, style, label=name)
    axes.set(xlabel="step", ylabel="loss")
    axes.legend()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)
    pyplot.close(figure)


def main() -> None:
    """Train on one device, then on all, and compare."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--folder", type=Path, default=Path("flax-data"))
    parser.add_argument("--plots", type=Path, default=Path("jax-plots"))
    parser.add_argument("--images", type=int, default=640, help="number of training images")
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--size", type=int, default=64, help="extent of an input, in pixels")
    parser.add_argument("--batch-size", type=int, default=64, help="of all devices together")
    options = parser.parse_args()
    root = write_dataset(options.folder / "train", options.images, seed=1)
    validation = write_dataset(options.folder / "val", max(8, options.images // 6), seed=2)

    devices = jax.devices()
    one = train(root, validation, devices[:1], options)
    every = train(root, validation, devices, options)
    apart = max(abs(a - b) for a, b in zip(one, every, strict=True))
    print(f"Largest difference of the losses of {len(one)} steps: {apart:.1e}")
    path = options.plots / "losses.png"
    draw(path, {"1 device": one, f"{len(devices)} devices": every})
    print(f"Losses drawn to {path}")


if __name__ == "__main__":
    main()
