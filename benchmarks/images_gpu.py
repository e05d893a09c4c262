"""Image pipelines on the GPU, into CUDA tensors of PyTorch: Headrace beside real DALI.

    hatch run bench:images --device gpu
    hatch run bench:images --device gpu --case train --batch-size 256 --threads 8 --profile

Both libraries run in turn, each in a process of its own, on the same GPU and files, with the same
number of threads, after a warm-up of five seconds: a host may be half as quick at first. A consumer
takes batches from each one's `DALIGenericIterator` and waits for the GPU once an epoch. Figures are
medians of samples per second, and their ratios to DALI.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.support import graphs_gpu as graphs
from benchmarks.support.apart import Apart, ApartPeer
from benchmarks.support.consumer import peer
from benchmarks.support.device_trace import print_trace
from benchmarks.support.harness import Peer, checked_cases, measure, print_table
from benchmarks.support.interpreter_share import interpreter_share, print_share
from benchmarks.support.resident_images import decoded, repeated, resident_batches

FROM_FILES: dict[str, Callable[..., Any]] = {
    "train": graphs.train,
    "train_float32": partial(graphs.train, dtype="FLOAT"),
    "train_crop": graphs.train_crop,
    "upload": partial(graphs.train, decoder="cpu"),
    "upload_augment": graphs.train_augment,
}
"""From JPEG files, decoded on the GPU; the last two on the CPU, and uploaded."""
RESIDENT: dict[str, tuple[Callable[..., Any], bool]] = {
    "augment": (graphs.augment, False),
    "augment_ragged": (graphs.augment, True),
    "light": (graphs.light, False),
    "light_ragged": (graphs.light, True),
}
"""From images on the GPU, of one size or (true) of many."""
CASES = (*FROM_FILES, *RESIDENT)
_EPOCH = 8192
_BATCHES = 2


def _rows(case: str, batch_sizes: list[int], threads: list[int]) -> Iterator[tuple[str, int, int]]:
    """What to print, batch size and threads of each row of a case."""
    for batch_size in batch_sizes:
        if case in RESIDENT:
            yield f"{case}, batch {batch_size}", batch_size, threads[0]
            continue
        for count in threads:
            yield f"{case}, batch {batch_size}, {count} threads", batch_size, count


def make_peer(case: str, root: Path, batch_size: int, threads: int, name: str) -> Peer:
    """The library `name` in a row of a case."""
    gc.collect()
    if case not in RESIDENT:
        graph = partial(FROM_FILES[case], root=str(root))
        return peer(name, graph, batch_size=batch_size, threads=threads)
    resident, ragged = RESIDENT[case]
    batches = resident_batches(decoded(root, batch_size), _BATCHES, ragged=ragged)
    graph = partial(resident, batches=batches)
    return peer(name, graph, batch_size=batch_size, threads=threads, reader=None)


def _profile(found: Peer, row: str) -> None:
    assert found.finish is not None
    title = f"{found.name}, {row}"
    if found.name == "Headrace":
        share = interpreter_share(found.step, found.finish)
        print_share(f"Threads of {title}", share)
    print_trace(f"GPU of {title}", found.step, found.finish)


def run(args: argparse.Namespace, root: Path, scratch: Path) -> None:
    """Measure what `args` ask for, and print a table after each case."""
    files = repeated(root, scratch, _EPOCH)
    with contextlib.ExitStack() as stack:
        libraries = [stack.enter_context(Apart(n)) for n in args.library or ["DALI", "Headrace"]]
        for case in checked_cases(args.case, CASES):
            rows: dict[str, list[ApartPeer]] = {}
            for row, batch_size, threads in _rows(case, args.batch_size, args.threads or [8]):
                peers = [
                    library.peer(make_peer, case, files, batch_size, threads, library.name)
                    for library in libraries
                ]
                measure(
                    peers,
                    rounds=args.rounds,
                    seconds=args.seconds,
                    warm_up_seconds=args.warm_up,
                )
                if args.profile:
                    for found in peers:
                        found.tell(_profile, row)
                rows[row] = peers
            print_table(f"{case}: medians of {args.rounds} rounds of {args.seconds} s", rows)
