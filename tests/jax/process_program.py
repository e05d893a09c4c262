"""What each of two processes runs in `test_processes`: iterators over the devices of both.

Arguments: number of the process, port of the coordinator, folder for results, files.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"
os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from headrace import fn
from headrace.plugin.jax import LastBatchPolicy, data_iterator
from headrace.plugin.jax.fn import jax_function

OUTPUTS = ["data", "label"]


def read(files, num_shards=1, shard_id=0, **arguments):
    data, label = fn.readers.file(
        files=files, num_shards=num_shards, shard_id=shard_id, name="reader", **arguments
    )
    return data, label


def make(files, sharding, policy="FILL", *, seed=None, batch_size=8, **arguments):
    def graph(num_shards, shard_id):
        return read(files, num_shards, shard_id, pad_last_batch=True, random_shuffle=True)

    return data_iterator(
        graph,
        OUTPUTS,
        reader_name="reader",
        sharding=sharding,
        last_batch_policy=LastBatchPolicy[policy],
        **arguments,
    )(batch_size=batch_size, seed=seed)


def seen(it):
    """What this process sees of an epoch."""
    total = jax.jit(lambda x: x.sum())
    return [
        {
            "shape": step["label"].shape,
            "devices": {
                s.device.id: np.asarray(s.data).ravel().tolist()
                for s in step["label"].addressable_shards
            },
            "sum": int(total(step["label"])),  # over all processes
            "agree": bool(jax.jit(lambda x, y: (x[:, :1] == y).all())(step["data"], step["label"])),
        }
        for step in it
    ]


def together(sharding, **arguments):
    """What a function inside the pipelines makes of both processes' rows, in each step."""

    @jax_function(sharding=sharding)
    @jax.jit
    def without_sum(x):
        return x - x.sum()

    def graph(num_shards, shard_id):
        def source(k):
            if k == 6:
                raise StopIteration
            return np.float32([[r + 10 * k + 4 * shard_id] for r in range(4)])

        return without_sum(fn.external_source(source=source))

    it = data_iterator(graph, "x", sharding=sharding, **arguments)(batch_size=8, num_threads=3)
    return [[float(v) for s in step["x"].addressable_shards for v in s.data.ravel()] for step in it]


def message(call, *arguments, **options):
    try:
        call(*arguments, **options)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


def main():
    rank, port, folder, files = int(sys.argv[1]), sys.argv[2], Path(sys.argv[3]), sys.argv[4:]
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(f"127.0.0.1:{port}", 2, rank)
    devices = np.array(jax.devices())
    flat = NamedSharding(Mesh(devices, ("batch",)), PartitionSpec("batch"))
    whole = NamedSharding(flat.mesh, PartitionSpec())
    # Rows of the mesh belong to processes: both have all parts of the batch.
    crossed = NamedSharding(Mesh(devices.reshape(2, 4), ("copy", "batch")), PartitionSpec("batch"))
    alternating = NamedSharding(
        Mesh(devices.reshape(2, 4).T.ravel(), ("batch",)), PartitionSpec("batch")
    )
    found = {
        "fill": seen(make(files, flat, seed=1)),
        "drop": seen(make(files, flat, "DROP")),
        "split": seen(make(files, flat, split_batches=True)),
        "alternating": seen(make(files, alternating)),
        "replicated": seen(make(files, {"data": flat, "label": whole})),
        "crossed": seen(make(files, crossed, seed=3)),
        "crossed, split": seen(make(files, crossed, seed=3, split_batches=True)),
        "errors": {
            "partial": message(make, files, flat, "PARTIAL"),
            "seed": message(make, files, crossed),
            "devices": message(data_iterator, read, OUTPUTS, devices=jax.local_devices()),
            "split": message(make, files, alternating, split_batches=True),
            "indivisible": message(make, files, flat, batch_size=12),
            "elsewhere": message(
                make, files, NamedSharding(Mesh(devices[:4], ("batch",)), PartitionSpec("batch"))
            ),
        },
    }
    pair = Mesh(np.array([devices[0], devices[4]]), ("batch",))
    found["function"] = together(NamedSharding(pair, PartitionSpec("batch")))
    found["function of several"] = together(flat, split_batches=True)
    (folder / f"{rank}.json").write_text(json.dumps(found))
    jax.distributed.shutdown()


if __name__ == "__main__":
    main()
