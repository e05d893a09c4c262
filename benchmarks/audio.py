"""The loop of the audio notebook: Headrace beside real DALI, in dynamic mode and as a pipeline.

    hatch run bench:audio                       all cases
    hatch run bench:audio --case dynamic --rounds 9
    hatch run bench:audio --library Headrace
    hatch run bench:audio --device gpu          from `audio.gpu()` on, on the GPU
    hatch run bench:audio --device gpu --case pipeline --batch-size 8 64 --threads 1 2 8

Cases are `dynamic` (eager, sync_cpu and captured; one loop, and loops in two threads of Python,
each with a shard of its own), `looks`: one loop that waits for every batch, for every second one,
or for none before the last of eight epochs, `pipeline`, `scalars`: a pipeline that works out where
to cut from the length of each clip, and `calls`: what a call costs of an operator that does
nothing.
All peers get the same files and run in turn, each library in a process of its own.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.support import audio_chain
from benchmarks.support.apart import Apart, ApartPeer
from benchmarks.support.audio_chain import DynamicLoop, dynamic_module
from benchmarks.support.harness import Peer, checked_cases, measure, print_table
from benchmarks.support.libraries import library
from examples.dynamic.speech import write_speech

CASES = ("dynamic", "looks", "pipeline", "scalars", "calls")
GRAPHS = {"pipeline": audio_chain.graph, "scalars": audio_chain.graph_of_scalars}
LOOPS = ((1, 2), (1, 1), (2, 1))
"""Loops, and threads for the operators of each."""
LOOKS = {"every batch": 1, "every second batch": 2, "none before the last": 0}
"""What a loop waits for, and every how many batches that is."""
EPOCHS_WITHOUT_A_LOOK = 8


class Ranks:
    """Loops over the shards of one data set, each in a thread of its own."""

    def __init__(self, loops: list[DynamicLoop]) -> None:
        self._loops = loops
        # A pool for each: contexts of dynamic mode belong to their threads.
        self._threads = [ThreadPoolExecutor(1) for _ in loops]

    def run(self) -> int:
        """Run all loops; return the number of samples."""
        if len(self._loops) == 1:
            return self._loops[0].run()
        pairs = zip(self._threads, self._loops, strict=True)
        running = [thread.submit(loop.run) for thread, loop in pairs]
        return sum(each.result() for each in running)


def _finish(device: str) -> Callable[[], None] | None:
    """What waits for all that was given to the device, if it is a GPU."""
    if device == "cpu":
        return None
    import torch

    return torch.cuda.synchronize


def make_dynamic(
    name: str,
    root: str,
    batch_size: int,
    device: str,
    mode: str,
    ranks: int,
    threads: int,
    look_every: int = 1,
    epochs: int = 1,
) -> Peer:
    """A library's loop in a mode of dynamic mode, or loops in as many threads."""
    loops = [
        DynamicLoop(
            dynamic_module(name),
            root,
            batch_size=batch_size,
            mode=mode,
            threads=threads,
            rank=rank,
            ranks=ranks,
            gpu=device == "gpu",
            look_every=look_every,
            epochs=epochs,
        )
        for rank in range(ranks)
    ]
    return Peer(name, Ranks(loops).run, _finish(device))


def make_pipeline(
    name: str, root: str, batch_size: int, device: str, graph: Callable[..., Any], threads: int
) -> Peer:
    """The same as a pipeline."""
    lib = library(name)
    gpu = device == "gpu"
    pipe = lib.Pipeline(batch_size, threads, 0 if gpu else None, seed=1)
    with pipe:
        pipe.set_outputs(graph(lib, root, gpu=gpu))
    pipe.build()
    return Peer(name, _step(pipe), _finish(device))


def rows(case: str, threads: list[int] | None) -> dict[str, tuple[Any, ...]]:
    """What is measured in a case: how a peer is made, and its last arguments, by name."""
    if case in GRAPHS:
        counts = threads or [2, 1]
        return {
            f"{case}, {_threads(count)}": (make_pipeline, GRAPHS[case], count) for count in counts
        }
    if case == "looks":
        return {
            f"{mode}, {_threads(count)}, looks at {looks}": (
                *(make_dynamic, mode, 1, count, every),
                EPOCHS_WITHOUT_A_LOOK,
            )
            for mode in ("eager", "sync_cpu")
            for count in threads or [2]
            for looks, every in LOOKS.items()
        }
    loops = LOOPS if threads is None else [(1, count) for count in threads]
    return {
        f"{mode}, {_loops(ranks)}, {_threads(count)}": (make_dynamic, mode, ranks, count)
        for mode in ("eager", "sync_cpu", "captured")
        for ranks, count in loops
        if not (mode == "captured" and ranks > 1)
    }


def _step(pipe: Any) -> Callable[[], int]:
    def step() -> int:
        return len(pipe.run()[0])

    return step


def _loops(count: int) -> str:
    return "1 loop" if count == 1 else f"{count} loops"


def _threads(count: int) -> str:
    return "1 thread" if count == 1 else f"{count} threads"


def print_calls(libraries: list[str], rounds: int, calls: int = 2000) -> None:
    """Microseconds for a call of `copy` on 16 numbers; in a row, and until the last is there."""
    table = Table(title=f"one call of `copy` on 16 numbers, us, medians of {rounds}")
    table.add_column("mode")
    for name in libraries:
        table.add_column(name, justify="right")
    for mode in ("eager", "sync_cpu"):
        for what in ("Tensor", "Batch of 8"):
            row = [f"{mode}, {what}"]
            for name in libraries:
                ndd = dynamic_module(name)
                data = np.zeros((8, 16), np.float32)
                found = ndd.tensor(data[0]) if what == "Tensor" else ndd.batch(data)
                seconds = [_calls(ndd, found, mode, calls) for _ in range(rounds + 1)][1:]
                row.append(f"{statistics.median(seconds) / calls * 1e6:.1f}")
            table.add_row(*row)
    Console(width=140).print(table)


def _calls(ndd: Any, data: Any, mode: str, calls: int) -> float:
    with getattr(ndd.EvalMode, mode):
        # The results of a loop body are dropped one after the other, as here.
        start = time.perf_counter()
        for _ in range(calls):
            found = ndd.copy(data)
        found.evaluate()
        return time.perf_counter() - start


def main() -> None:
    """Measure the cases that the command line asks for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--case", action="append", help="may be repeated; default: all")
    parser.add_argument("--library", action="append", help="only these; default: both")
    parser.add_argument("--device", choices=["cpu", "gpu"], default="cpu")
    parser.add_argument("--batch-size", type=int, nargs="+", default=[8])
    parser.add_argument("--threads", type=int, nargs="+", help="of one loop, or of a pipeline")
    parser.add_argument(
        "--workers", choices=["threads", "processes"], help="of Headrace, in place of its default"
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.5, help="of one round of one peer")
    parser.add_argument("--clips", type=int, default=64)
    args = parser.parse_args()
    if args.workers:
        os.environ["HEADRACE_WORKERS"] = args.workers
    libraries = args.library or ["DALI", "Headrace"]
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        homes = [stack.enter_context(Apart(name)) for name in libraries]
        write_speech(Path(folder), args.clips)
        for case in checked_cases(args.case, CASES):
            if case == "calls":
                print_calls(libraries, args.rounds)
                continue
            for batch_size in args.batch_size:
                found: dict[str, list[ApartPeer]] = {}
                for row, (make, *more) in rows(case, args.threads).items():
                    found[row] = [
                        home.peer(make, home.name, folder, batch_size, args.device, *more)
                        for home in homes
                    ]
                    measure(found[row], rounds=args.rounds, seconds=args.seconds)
                title = f"{case}: batch {batch_size}, {args.device}, medians of {args.rounds}"
                print_table(title, found)


if __name__ == "__main__":
    main()
