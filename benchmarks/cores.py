"""How throughput grows with cores: Headrace's threads and worker processes beside real DALI.

    hatch run bench:cores                               all cases, 1, 4 and all threads
    hatch run bench:cores --case audio --threads 1 2 4 8 16
    hatch run bench:cores --peer DALI processes
    hatch run bench:cores --case augment --peer alone processes --threads 16 --depth 6

Peers are `DALI`, `threads` and `processes` (Headrace with ``num_threads=n``), and `alone`: n
independent processes of Headrace with one thread each, which is what the machine itself allows.
Each peer has a process of its own, and all run in turn. Figures are medians of samples per second,
after a warm-up of 5 seconds: each worker process meets each page of the batches once, and how many
threads are best is found out.
`--depth` is the ``prefetch_queue_depth`` of `processes`; all others have 2.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.images import decoded
from benchmarks.support import audio_chain, graphs
from benchmarks.support.apart import Apart, Together
from benchmarks.support.harness import Peer, checked_cases, measure, print_table
from benchmarks.support.libraries import library
from examples.demo.photographs import write_dataset
from examples.dynamic.speech import write_speech

CASES = ("train", "val", "augment", "audio")
PEERS = ("DALI", "threads", "processes", "alone")
BATCH_SIZES = {"audio": 64}
BATCH_SIZE = 128
GRAPHS: dict[str, Callable[[Any, str], tuple[Any, ...]]] = {
    "train": graphs.train,
    "val": graphs.validate,
    "augment": lambda lib, _: graphs.augment(lib, decoded(BATCH_SIZE)),
    "small": graphs.small,
    "audio": lambda lib, root: (audio_chain.graph_of_scalars(lib, root),),
}


def make(
    name: str,
    case: str,
    root: str,
    threads: int,
    number: int = 0,
    *,
    depth: int = 2,
    batch_size: int | None = None,
) -> Peer:
    """A pipeline of a case, in process `number` of a peer."""
    workers = "processes" if name == "processes" else "threads"
    os.environ["HEADRACE_WORKERS"] = workers
    lib = library("DALI" if name == "DALI" else "Headrace")
    batch_size = batch_size or BATCH_SIZES.get(case, BATCH_SIZE)
    pipe = lib.Pipeline(batch_size, threads, None, seed=1, prefetch_queue_depth=depth)
    with pipe:
        pipe.set_outputs(*GRAPHS[case](lib, root))
    pipe.build()
    return Peer(name, lambda: len(pipe.run()[0]))


def _peer(
    home: str, homes: dict[str, list[Apart]], case: str, root: str, threads: int, depth: int
) -> Peer:
    if home == "alone":
        return Together("alone", homes[home][:threads], make, "alone", case, root, 1)
    own = depth if home == "processes" else 2
    return homes[home][0].peer(partial(make, depth=own), home, case, root, threads)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    cores = os.cpu_count() or 1
    parser.add_argument("--case", nargs="+", help="default: all")
    parser.add_argument("--peer", nargs="+", choices=PEERS, default=list(PEERS))
    parser.add_argument("--threads", type=int, nargs="+", default=sorted({1, 4, cores}))
    parser.add_argument("--depth", type=int, default=2, help="of worker processes' pipelines")
    parser.add_argument("--warm-up", type=float, default=5.0, help="seconds, of each peer")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=1.5, help="of one round of one peer")
    return parser.parse_args()


def main() -> None:
    """Measure what the command line asks for."""
    args = _arguments()
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        images = write_dataset(folder / "images", 512)
        write_speech(folder / "clips", 256)
        homes = {
            name: [
                stack.enter_context(Apart(name))
                for _ in range(max(args.threads) if name == "alone" else 1)
            ]
            for name in args.peer
        }
        for case in checked_cases(args.case, CASES):
            root = str(folder / "clips" if case == "audio" else images)
            rows: dict[str, list[Peer]] = {}
            for threads in args.threads:
                peers = [_peer(name, homes, case, root, threads, args.depth) for name in args.peer]
                measure(
                    peers,
                    rounds=args.rounds,
                    seconds=args.seconds,
                    warm_up_seconds=args.warm_up,
                )
                rows[f"{threads} threads"] = peers
            batch_size = BATCH_SIZES.get(case, BATCH_SIZE)
            title = f"{case}: batch {batch_size}, medians of {args.rounds}"
            print_table(title, rows, reference=args.peer[0])


if __name__ == "__main__":
    main()
