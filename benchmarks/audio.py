"""The loop of the audio notebook: Penstock beside real DALI, in dynamic mode and as a pipeline.

    hatch run bench:audio                       all cases
    hatch run bench:audio --case dynamic --rounds 9
    hatch run bench:audio --library Penstock
    hatch run bench:audio --device gpu          from `audio.gpu()` on, on the GPU

Cases are `dynamic` (eager, sync_cpu and captured; one loop, and loops in two threads of Python,
each with a shard of its own), `pipeline`, and `calls`: what a call of an operator costs that does
nothing.
All peers get the same files and run in turn in one process.
"""

from __future__ import annotations

import argparse
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
from benchmarks.support.audio_chain import DynamicLoop, dynamic_module
from benchmarks.support.harness import Peer, checked_cases, measure, print_table
from benchmarks.support.libraries import library
from examples.dynamic.speech import write_speech

CASES = ("dynamic", "pipeline", "calls")
LOOPS = ((1, 2), (1, 1), (2, 1))
"""Loops, and threads for the operators of each."""


class Ranks:
    """Loops over the shards of one data set, each in a thread of its own."""

    def __init__(self, loops: list[DynamicLoop]) -> None:
        self._loops = loops
        # A pool for each: contexts of dynamic mode belong to their threads.
        self._threads = [ThreadPoolExecutor(1) for _ in loops]

    def epoch(self) -> int:
        """One epoch of all shards; return the number of samples."""
        if len(self._loops) == 1:
            return self._loops[0].epoch()
        pairs = zip(self._threads, self._loops, strict=True)
        running = [thread.submit(loop.epoch) for thread, loop in pairs]
        return sum(each.result() for each in running)


def _finish(device: str) -> Callable[[], None] | None:
    """What waits for all that was given to the device, if it is a GPU."""
    if device == "cpu":
        return None
    import torch

    return torch.cuda.synchronize


def dynamic_rows(
    libraries: list[str], root: str, batch_size: int, device: str
) -> dict[str, list[Peer]]:
    """The loop in both modes, and captured, by the name of the row."""
    rows: dict[str, list[Peer]] = {}
    for mode in ("eager", "sync_cpu", "captured"):
        for ranks, threads in LOOPS:
            if mode == "captured" and ranks > 1:
                continue
            peers = []
            for name in libraries:
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
                    )
                    for rank in range(ranks)
                ]
                peers.append(Peer(name, Ranks(loops).epoch, _finish(device)))
            rows[f"{mode}, {_loops(ranks)}, {_threads(threads)}"] = peers
    return rows


def pipeline_rows(
    libraries: list[str], root: str, batch_size: int, device: str
) -> dict[str, list[Peer]]:
    """The same as a pipeline."""
    rows = {}
    for threads in (2, 1):
        peers = []
        for name in libraries:
            lib = library(name)
            gpu = device == "gpu"
            pipe = lib.Pipeline(batch_size, threads, 0 if gpu else None, seed=1)
            with pipe:
                pipe.set_outputs(audio_chain.graph(lib, root, gpu=gpu))
            pipe.build()
            peers.append(Peer(name, _step(pipe), _finish(device)))
        rows[f"pipeline, {_threads(threads)}"] = peers
    return rows


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
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.5, help="of one round of one peer")
    parser.add_argument("--clips", type=int, default=64)
    args = parser.parse_args()
    libraries = args.library or ["DALI", "Penstock"]
    with tempfile.TemporaryDirectory() as folder:
        write_speech(Path(folder), args.clips)
        for case in checked_cases(args.case, CASES):
            if case == "calls":
                print_calls(libraries, args.rounds)
                continue
            rows = (dynamic_rows if case == "dynamic" else pipeline_rows)(
                libraries, folder, args.batch_size, args.device
            )
            for peers in rows.values():
                measure(peers, rounds=args.rounds, seconds=args.seconds)
            title = f"{case}: batch {args.batch_size}, {args.device}, medians of {args.rounds}"
            print_table(title, rows)


if __name__ == "__main__":
    main()
