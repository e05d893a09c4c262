"""Pipelines on GPUs, into PyTorch: Headrace beside real DALI, each row in processes of its own.

    hatch run bench:gpu                              all rows
    hatch run bench:gpu --case cupy numpy --rounds 5
    hatch run bench:gpu --devices 2                  a training loader on one GPU and on two

Rows are arrays on the GPU, arrays that are uploaded, audio, and JPEG files. Figures are medians of
samples per second; libraries run in turn.

With `--devices`, peers are one process with one GPU, as many processes as GPUs, each with its
share of the processors, and one process with a pipeline for each GPU, into PyTorch and (Headrace)
into arrays of JAX that are sharded over the GPUs.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.support import audio_chain
from benchmarks.support import graphs_gpu as graphs
from benchmarks.support.apart import Apart, Together
from benchmarks.support.harness import Peer, checked_cases, measure, print_table
from benchmarks.support.resident_images import decoded, repeated, resident_batches
from examples.demo.photographs import write_dataset
from examples.dynamic.speech import write_speech

_EPOCH = 8192
_EXTENT = (300, 300)


class Row(NamedTuple):
    """A case with the sizes that it is measured at: samples of a batch, and threads."""

    kind: str
    """What it is fed: ``"files"``, ``"cupy"``, ``"numpy"`` or ``"speech"``."""
    graph: Callable[..., Any]
    sizes: tuple[tuple[int, int], ...]
    waits: bool = False
    """Whether the consumer waits for the GPU after each batch."""


ROWS = {
    "cupy": Row("cupy", graphs.three_operators, ((8, 4), (64, 4), (256, 4))),
    "cupy_waiting": Row("cupy", graphs.three_operators, ((8, 4), (64, 4), (256, 4)), waits=True),
    "numpy": Row("numpy", graphs.uploaded, ((64, 4), (256, 8))),
    "audio": Row("speech", partial(audio_chain.graph, gpu=True), ((8, 2), (64, 8))),
    "audio_dynamic": Row("speech", audio_chain.augment, ((8, 2), (64, 4))),
    "train": Row("files", graphs.train_crop, ((32, 8), (64, 4), (128, 8), (256, 4))),
    "validate": Row("files", graphs.validate, ((128, 8),)),
}


def make_peer(case: str, root: str, batch_size: int, threads: int, name: str) -> Peer:
    """The library `name` in a row, on GPU 0."""
    from benchmarks.support.consumer import peer

    row = ROWS[case]
    if case == "audio_dynamic":
        ndd = audio_chain.dynamic_module(name)
        loop = audio_chain.DynamicLoop(ndd, root, batch_size=batch_size, threads=threads, gpu=True)
        return Peer(name, loop.run, _synchronize)
    graph: Any = partial(row.graph, root=root)
    reader: str | None = "reader"
    if row.kind == "speech":
        graph, reader = (lambda lib: (row.graph(lib, root),)), None
    elif row.kind != "files":
        images = decoded(Path(root), batch_size, _EXTENT)
        batches: list[Any] = [images, np.roll(images, 1, 0)]
        if row.kind == "cupy":
            batches = resident_batches(images, 2, ragged=False)
        graph, reader = partial(row.graph, batches=batches), None
    return peer(name, graph, batch_size=batch_size, threads=threads, reader=reader, waits=row.waits)


def _synchronize() -> None:
    import torch

    torch.cuda.synchronize()


def make_on_devices(
    kind: str, root: str, batch_size: int, threads: int, devices: int, name: str, rank: int = 0
) -> Peer:
    """The library `name` with a training loader on one or several GPUs."""
    from benchmarks.support.consumer import peer

    graph = partial(graphs.train_crop, root=root)
    if kind == "processes":
        _take_share(rank, devices)
        shard = {"shard_id": rank, "num_shards": devices}
        return peer(
            name, partial(graph, **shard), batch_size=batch_size, threads=threads, devices=(rank,)
        )
    if kind == "jax":
        return _jax_peer(graph, batch_size, threads, devices)
    numbers = tuple(range(devices)) if kind == "pipelines" else (0,)
    if kind == "one":
        _take_share(0, devices)
    return peer(name, graph, batch_size=batch_size, threads=threads, devices=numbers)


def _take_share(rank: int, of: int) -> None:
    """Bind this process to its share of the processors, as a launcher of ranks does."""
    processors = sorted(os.sched_getaffinity(0))
    size = len(processors) // of
    os.sched_setaffinity(0, processors[rank * size : (rank + 1) * size])


def _jax_peer(graph: Any, batch_size: int, threads: int, devices: int) -> Peer:
    import jax
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    import headrace
    from headrace.plugin.jax import data_iterator

    there = jax.devices()[:devices]
    sharding = NamedSharding(Mesh(np.array(there), ("batch",)), PartitionSpec("batch"))
    seen = jax.jit(lambda images: images[:, 0, 0, 0])  # nothing is exchanged

    @data_iterator(output_map=["images", "labels"], reader_name="reader", sharding=sharding)
    def images(num_shards: int, shard_id: int) -> Any:
        return graph(headrace, num_shards=num_shards, shard_id=shard_id)

    iterator = images(batch_size=batch_size * devices, num_threads=threads, seed=42)
    last: list[Any] = [None]

    def endless() -> Iterator[Any]:
        while True:
            yield from iterator

    batches = endless()

    def step() -> int:
        batch = next(batches)["images"]
        last[0] = seen(batch)
        return len(batch)

    return Peer("Headrace", step, lambda: jax.block_until_ready(last[0]), ahead=3)


PEERS = {
    "one GPU": "one",
    "processes": "processes",
    "one process": "pipelines",
    "one process, JAX": "jax",
}
"""Ways to use several GPUs, the first of which is the reference."""


def _several(args: argparse.Namespace, root: str) -> None:
    """Measure what several GPUs make of one."""
    count = args.devices
    for batch_size, threads in args.size or [(128, 8)]:
        for name in args.library:
            peers = []
            with contextlib.ExitStack() as stack:
                for title, kind in PEERS.items():
                    if kind == "jax" and name == "DALI":
                        continue
                    homes = [
                        stack.enter_context(Apart(title))
                        for _ in range(count if kind == "processes" else 1)
                    ]
                    sizes = root, batch_size, threads, count, name
                    if kind == "processes":
                        peers.append(Together(title, homes, make_on_devices, kind, *sizes))
                    else:
                        peers.append(homes[0].peer(make_on_devices, kind, *sizes))
                measure(
                    peers,
                    rounds=args.rounds,
                    seconds=args.seconds,
                    warm_up_seconds=args.warm_up,
                )
            title = f"{name}: training, {count} GPUs, batch {batch_size}, {threads} threads a GPU"
            print_table(title, {"train": peers}, reference="one GPU")


def _single(args: argparse.Namespace, roots: dict[str, str]) -> None:
    """Measure the rows on one GPU."""
    for case in checked_cases(args.case, tuple(ROWS)):
        row = ROWS[case]
        rows: dict[str, list[Peer]] = {}
        for batch_size, threads in args.size or row.sizes:
            with contextlib.ExitStack() as stack:
                peers: list[Peer] = []
                for name in args.library:
                    home = stack.enter_context(Apart(name))
                    root = roots["speech" if row.kind == "speech" else "files"]
                    peers.append(home.peer(make_peer, case, root, batch_size, threads, name))
                measure(
                    peers,
                    rounds=args.rounds,
                    seconds=args.seconds,
                    warm_up_seconds=args.warm_up,
                )
            rows[f"batch {batch_size}, {threads} threads"] = peers
        print_table(f"{case}: medians of {args.rounds}", rows)


def _size(text: str) -> tuple[int, int]:
    batch_size, _, threads = text.partition(",")
    return int(batch_size), int(threads)


def main() -> None:
    """Measure what the command line asks for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--case", nargs="+", help=f"of {', '.join(ROWS)}; default: all")
    parser.add_argument("--library", nargs="+", default=["DALI", "Headrace"])
    parser.add_argument("--devices", type=int, default=1, help="GPUs of the training loader")
    parser.add_argument("--size", type=_size, nargs="+", help="batch size and threads: 128,8")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=1.5, help="of one round of one peer")
    parser.add_argument("--warm-up", type=float, default=5.0, help="seconds, of each peer")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        files = repeated(write_dataset(folder / "photographs", 600), folder, _EPOCH)
        if args.devices > 1:
            _several(args, str(files))
            return
        write_speech(folder / "speech", 256)
        _single(args, {"files": str(files), "speech": str(folder / "speech")})


if __name__ == "__main__":
    main()
