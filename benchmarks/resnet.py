"""A ResNet in mixed precision, fed from JPEG files: how much of its speed the loader allows.

    python -m torch.distributed.run --standalone --nproc-per-node 2 -m benchmarks.resnet

Under torchrun each rank has a GPU, its share of the processors, and its shard of the files, and
the network is a `DistributedDataParallel`. Needs torchvision for the network. Rank 0 prints images
a second of all ranks: with one batch over and over, and with the loader.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from benchmarks.support import graphs_gpu as graphs
from benchmarks.support.libraries import library, pytorch_plugin
from benchmarks.support.resident_images import repeated
from examples.demo.photographs import write_dataset

_LEAST_RATE = 4000
"""Images a second of a GPU: a round is no longer than it is asked to be where there are as many."""


def _batches(name: str, root: str, args: argparse.Namespace, rank: int, of: int) -> Iterator[Any]:
    lib = library(name)
    pipe = lib.Pipeline(args.batch_size, args.threads, rank, seed=42 + rank)
    with pipe:
        shard = {"shard_id": rank, "num_shards": of}
        pipe.set_outputs(*graphs.train_crop(lib, root, **shard))
    loader = pytorch_plugin(name).DALIGenericIterator(
        [pipe], ["images", "labels"], reader_name="reader", auto_reset=True
    )
    while True:
        for (batch,) in loader:
            yield batch["images"], batch["labels"].squeeze(1).long()


def _rate(model: Any, optimizer: Any, batches: Iterator[Any], seconds: float, size: int) -> float:
    """Images a second of this rank, after a quarter of the time for warming up."""

    def step() -> None:
        images, labels = next(batches)
        with torch.autocast("cuda", torch.bfloat16):
            found = model(images.to(memory_format=torch.channels_last))
            loss = torch.nn.functional.cross_entropy(found, labels)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()

    for _ in range(15):
        step()
    torch.cuda.synchronize()
    start, steps = time.perf_counter(), 0
    # So many steps that all ranks do the same number: gradients are exchanged in each.
    count = max(20, int(seconds * _LEAST_RATE / size))
    for _ in range(count):
        step()
        steps += 1
    torch.cuda.synchronize()
    return steps * size / (time.perf_counter() - start)


def main() -> None:
    """Measure what the command line asks for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--library", nargs="+", default=["DALI", "Headrace"])
    parser.add_argument("--network", choices=["resnet18", "resnet50"], default="resnet50")
    parser.add_argument("--batch-size", type=int, default=256)
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=6.0)
    args = parser.parse_args()
    try:
        from torchvision import models
    except ImportError:
        raise SystemExit("torchvision has the network: install it beside PyTorch.") from None

    dist.init_process_group("nccl")
    rank, of = dist.get_rank(), dist.get_world_size()
    torch.cuda.set_device(rank)
    processors = sorted(os.sched_getaffinity(0))
    size = len(processors) // of
    os.sched_setaffinity(0, processors[rank * size : (rank + 1) * size])
    network = getattr(models, args.network)(num_classes=1000)
    model = network.cuda().to(memory_format=torch.channels_last)
    model = torch.nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        root = str(repeated(write_dataset(folder / "photographs", 600), folder, 16384))
        constant = (
            torch.randn(args.batch_size, 3, 224, 224, device="cuda", dtype=torch.float16),
            torch.zeros(args.batch_size, dtype=torch.long, device="cuda"),
        )
        peers = {"one batch over and over": lambda: iter(lambda: constant, None)}
        for name in args.library:
            peers[name] = partial(_batches, name, root, args, rank, of)
        for name, make in peers.items():
            rate = _rate(model, optimizer, make(), args.seconds, args.batch_size)
            total = torch.tensor([rate], device="cuda")
            dist.all_reduce(total)
            if rank == 0:
                print(f"{of} GPUs, {name}: {total.item():,.0f} images/s", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
