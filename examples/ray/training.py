"""Train a small network on photographs, fed by the processors of a Ray cluster.

    hatch run ray:training                     two nodes, which are processes of this machine
    hatch run ray:training --address auto      on a cluster that runs: `ray start --head` made it

Each rank of Ray Train reads a shard, has workers of its own, and gets its batches by `RayIterator`.
Beside a training on one machine, three lines are different: they are marked with (1), (2) and (3).
"""

from __future__ import annotations

import argparse
import itertools
import os
import tempfile
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")

import ray
import torch
from ray.cluster_utils import Cluster
from ray.train import ScalingConfig
from ray.train.torch import TorchTrainer, prepare_model
from torch import nn

from examples.demo.photographs import write_dataset
from headrace import fn, pipeline_def, types
from headrace.plugin.ray import LastBatchPolicy, RayIterator  # (1)

EXTENT = 64


@pipeline_def(batch_size=32, num_threads=1, device_id=None, seed=1)
def training(root: str, rank: int, ranks: int) -> Any:
    """Photographs, cropped at random, and their labels."""
    encoded, labels = fn.readers.file(
        file_root=root,
        name="reader",
        shard_id=rank,
        num_shards=ranks,
        shuffle_after_epoch=True,
        pad_last_batch=True,
    )
    images = fn.decoders.image_random_crop(encoded, random_area=[0.3, 1.0])
    images = fn.resize(images, size=(EXTENT, EXTENT))
    images = fn.crop_mirror_normalize(
        images,
        mirror=fn.random.coin_flip(),
        dtype=types.FLOAT,
        output_layout="CHW",
        mean=[128.0] * 3,
        std=[60.0] * 3,
    )
    return images, labels


def network(classes: int) -> nn.Module:
    """A few convolutions."""
    widths = [3, 16, 32, 64]
    layers: list[nn.Module] = []
    for before, after in itertools.pairwise(widths):
        layers += [nn.Conv2d(before, after, 3, 2, 1), nn.BatchNorm2d(after), nn.ReLU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, classes))


def train(config: dict[str, Any]) -> None:
    """Work of one rank."""
    context = ray.train.get_context()
    rank, ranks = context.get_world_rank(), context.get_world_size()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    batches = RayIterator(  # (2)
        training(config["root"], rank, ranks),
        ["images", "labels"],
        reader_name="reader",
        last_batch_policy=LastBatchPolicy.FILL,
        num_workers=(1, config["workers"]),  # (3)
    )
    model = prepare_model(network(config["classes"]))
    optimizer = torch.optim.AdamW(model.parameters(), 3e-3)
    for epoch in range(config["epochs"]):
        right, seen, began = 0, 0, time.perf_counter()
        for (batch,) in batches:
            labels = batch["labels"].squeeze(1).long()
            found = model(batch["images"])
            loss = nn.functional.cross_entropy(found, labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            right += int((found.argmax(1) == labels).sum())
            seen += len(labels)
        told = batches.statistics()[0]
        ray.train.report(
            {
                "epoch": epoch,
                "loss": float(loss),
                "accuracy": right / seen,
                "images_per_second": seen / (time.perf_counter() - began),
                "workers": len(told["ray_workers"]),
                "nodes": len({worker["node_id"] for worker in told["ray_workers"]}),
            }
        )
        if rank == 0:
            print(
                f"epoch {epoch}: accuracy {right / seen:.2f}, {len(told['ray_workers'])} workers, "
                f"waits for {told['ray_trainer_waits']:.0%} of the time",
                flush=True,
            )
    if rank == 0:
        print(batches.cut.why, flush=True)


def main() -> None:
    """Start two nodes, unless there is a cluster, and train."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--address", help='of a cluster that runs; "auto" for that of this machine')
    parser.add_argument("--root", help="folder of images, seen by all nodes; photographs otherwise")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--workers", type=int, default=2, help="at most, for each rank")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--images", type=int, default=768)
    asked = parser.parse_args()
    address = asked.address
    cluster = None
    if address is None:
        head = {"num_cpus": asked.ranks + 1, "include_dashboard": False}
        cluster = Cluster(initialize_head=True, head_node_args=head)
        cluster.add_node(num_cpus=asked.ranks * asked.workers)
        address = cluster.address
    ray.init(address=address)
    with tempfile.TemporaryDirectory() as folder:
        root = asked.root or str(write_dataset(Path(folder) / "photographs", asked.images))
        config = {
            "root": root,
            "classes": len(list(Path(root).iterdir())),
            "workers": asked.workers,
            "epochs": asked.epochs,
        }
        scaling = ScalingConfig(num_workers=asked.ranks, resources_per_worker={"CPU": 1})
        TorchTrainer(train, train_loop_config=config, scaling_config=scaling).fit()
    ray.shutdown()
    if cluster is not None:
        cluster.shutdown()


if __name__ == "__main__":
    main()
