"""One rank of a training, started by torchrun: what it saw is printed by rank 0 as a line of JSON.

    torchrun --nproc-per-node 2 -m tests.gpu.programs.training FOLDER ddp|fsdp EPOCHS [KILL_AT_STEP]

Each rank has a GPU, and the processors of its share; without GPUs both are on the CPU.
With KILL_AT_STEP, rank 1 is killed there.
"""

from __future__ import annotations

import json
import os
import signal
import sys

import torch
import torch.distributed as dist

from headrace import fn, pipeline_def, types
from headrace.plugin.pytorch import DALIGenericIterator, LastBatchPolicy

BATCH = 8


@pipeline_def(batch_size=BATCH, num_threads=2)
def training(folder, rank, world_size, device):
    encoded, labels = fn.readers.file(
        file_root=folder,
        random_shuffle=True,
        pad_last_batch=True,
        shard_id=rank,
        num_shards=world_size,
        name="reader",
    )
    images = fn.decoders.image_random_crop(encoded, device=device, seed=3)
    images = fn.resize(images, size=(64, 64))
    images = fn.crop_mirror_normalize(
        images, dtype=types.FLOAT, output_layout="CHW", mean=[120.0], std=[60.0]
    )
    return images, labels, fn.get_property(encoded, key="source_info")


def network():
    def block(fan_in, fan_out):
        return torch.nn.Sequential(
            torch.nn.Conv2d(fan_in, fan_out, 3, 2, 1),
            torch.nn.BatchNorm2d(fan_out),
            torch.nn.ReLU(),
        )

    torch.manual_seed(0)
    return torch.nn.Sequential(
        block(3, 16), block(16, 32), torch.nn.Flatten(), torch.nn.Linear(32 * 256, 8)
    )


def take_share(rank, world_size):
    """Bind this process to its share of the processors."""
    processors = sorted(os.sched_getaffinity(0))
    size = max(1, len(processors) // world_size)
    own = processors[rank * size : (rank + 1) * size] or processors
    os.sched_setaffinity(0, own)
    return own


def main():
    folder, kind, epochs = sys.argv[1], sys.argv[2], int(sys.argv[3])
    kill_at = int(sys.argv[4]) if len(sys.argv) > 4 else -1
    on_gpu = torch.cuda.is_available() and torch.cuda.device_count() > 1
    dist.init_process_group("nccl" if on_gpu else "gloo")
    rank, world_size = dist.get_rank(), dist.get_world_size()
    take_share(rank, world_size)
    device_id = rank if on_gpu else None
    device = torch.device("cpu" if device_id is None else f"cuda:{rank}")
    if on_gpu:
        torch.cuda.set_device(device)
    where = "mixed" if on_gpu else "cpu"
    pipe = training(folder, rank, world_size, where, device_id=device_id, seed=100 + rank)
    loader = DALIGenericIterator(
        pipe,
        ["image", "label", "source"],
        reader_name="reader",
        last_batch_policy=LastBatchPolicy.PARTIAL,
    )
    model = network().to(device)
    if kind == "ddp":
        model = torch.nn.parallel.DistributedDataParallel(model)
    else:
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard

        # Named, as PyTorch would take the machine's GPU for both ranks where it has one.
        fully_shard(model, mesh=init_device_mesh(device.type, (world_size,)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    seen: list[list[str]] = []
    steps = 0
    for _ in range(epochs):
        names: list[str] = []
        for (batch,) in loader:
            images, labels = batch["image"], batch["label"].to(device).squeeze(1).long()
            assert images.device == device
            names += [bytes(row.tolist()).decode().rstrip("\0") for row in batch["source"]]
            if steps == kill_at and rank == 1:
                os.kill(os.getpid(), signal.SIGKILL)
            with torch.autocast(device.type, torch.bfloat16):
                loss = torch.nn.functional.cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            steps += 1
        seen.append(names)
    everything: list[object] = [None] * world_size
    weights = [p.detach() for p in model.parameters()]
    if kind == "fsdp":
        weights = [w.full_tensor() for w in weights]
    total = float(sum(w.double().abs().sum() for w in weights))
    dist.all_gather_object(everything, (seen, steps, total, sorted(os.sched_getaffinity(0))))
    if rank == 0:
        print("FOUND " + json.dumps({"ranks": everything, "gpu": on_gpu}), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
