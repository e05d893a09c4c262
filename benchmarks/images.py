"""Image pipelines: Headrace beside real DALI and beside a thread pool written by hand.

    hatch run bench:images                      all cases
    hatch run bench:images --case train --rounds 9
    hatch run bench:images --device gpu         see benchmarks/images_gpu.py

All peers get the same files, the same number of threads and run in turn, on the CPU in one
process. Figures are medians of samples per second, and their ratios to DALI.
"""

from __future__ import annotations

import argparse
import itertools
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from benchmarks.support import by_hand, graphs
from benchmarks.support.harness import Peer, checked_cases, measure, print_table
from benchmarks.support.libraries import library
from examples.demo.photographs import photographs, write_dataset

BATCH_SIZE = 64
CASES = ("train", "val", "augment")


def pipeline_peers(graph: Callable[[Any], Any], threads: int, batch_size: int) -> list[Peer]:
    """One peer for each library, running `graph` of that library."""
    peers = []
    for name in ("DALI", "Headrace"):
        lib = library(name)
        pipe = lib.Pipeline(batch_size=batch_size, num_threads=threads, device_id=None, seed=42)
        with pipe:
            outputs = graph(lib)
            pipe.set_outputs(*(outputs if isinstance(outputs, tuple) else (outputs,)))
        pipe.build()
        peers.append(Peer(name, _step(pipe)))
    return peers


def _step(pipe: Any) -> Callable[[], int]:
    def step() -> int:
        return len(pipe.run()[0])

    return step


def _by_hand(work: Any, items: Iterator[Any], shape: tuple[int, ...], threads: int) -> Peer:
    pool = by_hand.Pool(work, items, shape, BATCH_SIZE, threads)
    return Peer("by hand", lambda: len(pool.batch()))


def _files(root: Path) -> Iterator[Path]:
    return itertools.cycle(sorted(root.glob("*/*.jpg")))


def decoded(count: int, extent: int = 256) -> np.ndarray:
    """A batch of decoded photographs, uint8 HWC."""
    images = itertools.islice(itertools.cycle(photographs().values()), count)
    size = (extent, extent)
    return np.stack([cv2.resize(i, size, interpolation=cv2.INTER_AREA) for i in images])


def run_case(name: str, root: Path, threads: int) -> dict[str, list[Peer]]:
    """Peers of one case, by the name of the row they belong to."""
    if name == "train":
        peers = pipeline_peers(lambda lib: graphs.train(lib, str(root)), threads, BATCH_SIZE)
        hand = _by_hand(by_hand.train, _files(root), (3, 224, 224), threads)
        return {"image_train": [*peers, hand]}
    if name == "val":
        peers = pipeline_peers(lambda lib: graphs.validate(lib, str(root)), threads, BATCH_SIZE)
        hand = _by_hand(by_hand.validate, _files(root), (3, 224, 224), threads)
        return {"image_val": [*peers, hand]}
    batch = decoded(BATCH_SIZE)
    peers = pipeline_peers(lambda lib: graphs.augment(lib, batch), threads, BATCH_SIZE)
    hand = _by_hand(by_hand.augment, itertools.cycle(batch), (3, 256, 256), threads)
    return {"image_augment": [*peers, hand]}


def _run_on_cpu(args: argparse.Namespace, root: Path) -> None:
    for case in checked_cases(args.case, CASES):
        for threads in args.threads or [2]:
            rows = run_case(case, root, threads)
            for peers in rows.values():
                measure(peers, rounds=args.rounds, seconds=args.seconds)
            title = f"{case}: batch {BATCH_SIZE}, {threads} threads, medians of {args.rounds}"
            print_table(title, rows)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", choices=["cpu", "gpu"], default="cpu")
    parser.add_argument("--case", action="append", help="may be repeated; default: all")
    parser.add_argument("--threads", type=int, nargs="+", help="default: 2; on the GPU 8")
    parser.add_argument(
        "--workers", choices=["threads", "processes"], help="of Headrace, in place of its default"
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--seconds", type=float, default=1.5, help="length of one round of one peer"
    )
    parser.add_argument("--files", type=Path, help="class folders of JPEGs to use")
    gpu = parser.add_argument_group("with --device gpu")
    gpu.add_argument("--batch-size", type=int, nargs="+", default=[64, 256])
    gpu.add_argument("--library", action="append", help="only these; default: both")
    gpu.add_argument("--warm-up", type=float, default=5.0, help="seconds, of each library")
    gpu.add_argument(
        "--profile", action="store_true", help="also tell where threads and GPU spend an iteration"
    )
    return parser.parse_args()


def main() -> None:
    """Measure what the command line asks for and print the tables."""
    args = _arguments()
    if args.workers:
        os.environ["HEADRACE_WORKERS"] = args.workers
    with tempfile.TemporaryDirectory() as scratch:
        root = args.files or write_dataset(Path(scratch) / "photographs", 600)
        if args.device == "cpu":
            _run_on_cpu(args, root)
            return
        # Only this one needs PyTorch and a GPU.
        from benchmarks import images_gpu

        images_gpu.run(args, root, Path(scratch))


if __name__ == "__main__":
    main()
