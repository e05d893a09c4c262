"""JAX iterators step by step, after the tutorial of DALI's JAX plugin.

    hatch run jax:getting-started
    hatch run jax:getting-started --folder my-photographs --plots my-plots

Each `# %%` begins a cell for editors that run scripts as notebooks. Pictures are written to PNG
files. Where there is no GPU, the CPU plays eight devices.
"""

# %% Devices
from __future__ import annotations

import argparse
import os
import time
from pathlib import Path
from typing import Any

# Before JAX makes its devices. It only matters where the CPU is all there is.
os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=8")

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

import headrace
from examples.demo.photographs import write_dataset
from headrace import fn, pipeline_def
from headrace.plugin.jax import DALIGenericIterator, data_iterator

IMAGES = 21
DECODER = "mixed" if jax.default_backend() == "gpu" else "cpu"
"""Where images are decoded: ``"mixed"`` is a GPU that reads its files' bytes on the host."""
BATCH = 8
"""Samples of a batch, on all devices together."""


def parse_options() -> argparse.Namespace:
    """What the command line says."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--folder", type=Path, default=Path("jax-data"))
    parser.add_argument("--plots", type=Path, default=Path("jax-plots"))
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 4])
    parser.add_argument("--epochs", type=int, default=20, help="epochs that are timed")
    return parser.parse_args()


def show(path: Path, batch: dict[str, jax.Array]) -> None:
    """Write the images of a batch to a PNG file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    headrace.show(batch, path, columns=4)
    print(f"  written to {path}")


# %% Quick start: a function that describes a pipeline becomes one that makes iterators
def photographs(root: Path, num_shards: int = 1, shard_id: int = 0, **reader: Any) -> Any:
    """Read and decode files, resize the images; returns images and labels."""
    jpegs, labels = fn.readers.file(
        file_root=root, num_shards=num_shards, shard_id=shard_id, name="image_reader", **reader
    )
    return fn.resize(fn.decoders.image(jpegs, device=DECODER), size=(256, 256)), labels


@data_iterator(output_map=["images", "labels"], reader_name="image_reader")
def simple_iterator(root: Path) -> Any:
    """All images once, in the order of their files."""
    return photographs(root)


def quick_start(root: Path, plots: Path) -> None:
    """One image after the other."""
    iterator = simple_iterator(root, batch_size=1)
    batch = next(iterator)
    images, labels = batch["images"], batch["labels"]
    print(f"images: {isinstance(images, jax.Array)=}, {images.shape}, {images.dtype}")
    print(f"labels: {isinstance(labels, jax.Array)=}, {labels.shape}, {labels.dtype}")
    print(f"on {images.device}")
    show(plots / "quick_start.png", batch)


# %% The same by hand: a pipeline, and an iterator of it
@pipeline_def(num_threads=4)
def simple_pipeline(root: Path) -> Any:
    """As above."""
    return photographs(root)


def by_hand(root: Path) -> None:
    """A pipeline on the first GPU, or on the CPU."""
    pipeline = simple_pipeline(root, batch_size=1, device_id=0 if DECODER == "mixed" else None)
    iterator = DALIGenericIterator(pipeline, ["images", "labels"], reader_name="image_reader")
    print(f"{next(iterator)['images'].shape}")


# %% Batches, and the length of an epoch
def batching(root: Path, plots: Path) -> None:
    """Many images at once."""
    iterator = simple_iterator(root, batch_size=BATCH)
    batch = next(iterator)
    print(f"images: {batch['images'].shape}, labels: {batch['labels'].shape}")
    show(plots / "batch.png", batch)
    print(f"batches of {BATCH} in an epoch: {len(iterator)}")
    iterator = simple_iterator(root, batch_size=1)
    print(f"len(iterator) = {len(iterator)}, steps: {sum(1 for _ in iterator)}")


# %% Shuffling: the same seed gives the same order
@data_iterator(output_map=["images", "labels"], reader_name="image_reader")
def shuffled_iterator(root: Path) -> Any:
    """All images once, in random order."""
    return photographs(root, random_shuffle=True, initial_fill=IMAGES)


def shuffling(root: Path) -> None:
    """Three orders, of which two are the same."""
    for seed in (1, 1, 2):
        batch = next(shuffled_iterator(root, batch_size=BATCH, seed=seed))
        print(f"seed {seed}: labels {batch['labels'].ravel().tolist()}")


# %% Augmentation: each image gets an angle of its own
@data_iterator(output_map=["images", "labels"], reader_name="image_reader")
def rotated_iterator(root: Path) -> Any:
    """Images turned by up to 30 degrees."""
    images, labels = photographs(root)
    angle = fn.random.uniform(range=(-30.0, 30.0))
    return fn.rotate(images, angle=angle, keep_size=True, fill_value=0), labels


def augmentation(root: Path, plots: Path) -> None:
    """Random rotation."""
    show(plots / "rotated.png", next(rotated_iterator(root, batch_size=BATCH, seed=0)))


# %% Several devices: one pipeline for each, one global array for all
def several_devices(root: Path) -> None:
    """Batches over all devices: `num_shards` and `shard_id` come from the sharding."""
    mesh = Mesh(np.array(jax.devices()), axis_names=("batch",))
    sharding = NamedSharding(mesh, PartitionSpec("batch"))
    print(f"{len(jax.devices())} devices: {sharding}")

    @data_iterator(output_map=["images", "labels"], reader_name="image_reader", sharding=sharding)
    def sharded_iterator(root: Path, num_shards: int, shard_id: int) -> Any:
        return photographs(root, num_shards, shard_id)

    per_device = max(1, BATCH // len(jax.devices()))
    batch = next(sharded_iterator(root, batch_size=per_device * len(jax.devices())))
    images, labels = batch["images"], batch["labels"]
    print(f"global images: {images.shape}, {images.sharding}")
    for shard in images.addressable_shards:
        print(f"  {shard.device}: {shard.index[0]} {shard.data.shape}")
    print("labels on the devices:")
    jax.debug.visualize_array_sharding(labels.ravel())


# %% Threads: how many are needed to keep up
def threads(root: Path, counts: list[int], epochs: int) -> None:
    """Time whole epochs."""
    for count in counts:
        iterator = simple_iterator(root, batch_size=BATCH, num_threads=count)
        jax.block_until_ready([batch["images"] for batch in iterator])  # all is compiled now
        start = time.perf_counter()
        for _ in range(epochs):
            for batch in iterator:
                jax.block_until_ready(batch["images"])
        seconds = time.perf_counter() - start
        print(f"num_threads={count}: {epochs * IMAGES / seconds:,.0f} images/s")


# %% All of it
def main() -> None:
    """Run one step after the other."""
    options = parse_options()
    root, plots = write_dataset(options.folder, IMAGES), options.plots
    print("Quick start")
    quick_start(root, plots)
    print("\nA pipeline and an iterator by hand")
    by_hand(root)
    print("\nBatches")
    batching(root, plots)
    print("\nShuffling")
    shuffling(root)
    print("\nRandom rotation")
    augmentation(root, plots)
    print("\nSeveral devices")
    several_devices(root)
    print("\nThreads")
    threads(root, options.threads, options.epochs)


if __name__ == "__main__":
    main()
