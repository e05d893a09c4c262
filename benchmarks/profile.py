"""What a profile costs: the same pipeline with and without one, in turn.

    hatch run bench:profile
    hatch run bench:profile --case train --rounds 400

A round is a few batches, from a full queue to a full queue, so that all of its work is in it. The
cost is the processor time of the process for a sample, on over off: the median of the ratios of
neighbouring rounds, which depends little on what else the machine does. The thread that looks at a
profiled pipeline does so in rounds of both, and its time is counted with those that are profiled:
the last two columns have the rows that threads note for a sample, and its share of a processor.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import headrace
from benchmarks.images import decoded
from benchmarks.support import audio_chain, graphs
from benchmarks.support.harness import checked_cases
from examples.demo.photographs import write_dataset
from examples.dynamic.speech import write_speech
from headrace import fn
from headrace.executor.iteration import DONE
from headrace.profiling import Profile

BATCH_SIZE = 64


def _small(_: Any, __: str) -> Any:
    """Hardly any work for a sample: all that there is to record costs most here."""
    return (fn.cast(fn.random.uniform(shape=(8,)) * 2 + 1, dtype=headrace.types.INT32),)


CASES: dict[str, Callable[[Any, str], tuple[Any, ...]]] = {
    "train": graphs.train,
    "val": graphs.validate,
    "augment": lambda lib, _: graphs.augment(lib, decoded(BATCH_SIZE)),
    "audio": lambda lib, root: (audio_chain.graph_of_scalars(lib, root),),
    "small": _small,
}


class Measured:
    """A pipeline whose processor time is measured, from a full queue to a full queue."""

    def __init__(self, case: str, root: str, args: argparse.Namespace, profile: Any) -> None:
        self._pipe = headrace.Pipeline(
            BATCH_SIZE, args.threads, None, seed=1, workers="threads", profile=profile
        )
        with self._pipe:
            self._pipe.set_outputs(*CASES[case](headrace, root))
        self._pipe.build()
        self.samples = 0
        self.costs: list[float] = []
        """Seconds of a processor for a sample, one for each round."""
        self.walls: list[float] = []
        """The same by the clock."""

    def run(self, batches: int) -> None:
        """Make batches, and those that are to be ahead of them."""
        made = sum(len(self._pipe.run()[0]) for _ in range(batches))
        self.samples += made
        executor = self._pipe._executor
        assert executor is not None
        while any(iteration.state != DONE for iteration in list(executor._schedule.queue)):
            time.sleep(0.0005)

    def round(self, batches: int, *, looks: bool) -> None:
        """Measure batches; `looks` says whether the thread that looks at pipelines counts."""
        before, samples, clock = _used(looks), self.samples, time.perf_counter()
        self.run(batches)
        samples = self.samples - samples
        self.costs.append((_used(looks) - before) / samples)
        self.walls.append((time.perf_counter() - clock) / samples)


def _used(looks: bool) -> float:
    """Seconds of a processor that the process has used."""
    return time.process_time() - (0.0 if looks else _looking())


def _looking() -> float:
    """Seconds of a processor of the threads that look at pipelines."""
    return sum(
        time.clock_gettime(time.pthread_getcpuclockid(thread.ident))
        for thread in threading.enumerate()
        if thread.name == "headrace-profiler" and thread.ident is not None
    )


def _ratio(over: list[float], under: list[float]) -> str:
    low, middle, high = np.quantile(np.divide(over, under), [0.25, 0.5, 0.75])
    return f"{middle:.4f} ({low:.3f} .. {high:.3f})"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--case", action="append", help="may be repeated; all by default")
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--batches", type=int, default=4, help="in a round")
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    table = Table("case", "us off", "us on", "cost", "by the clock", "rows", "looks")
    with tempfile.TemporaryDirectory() as scratch:
        images = str(write_dataset(Path(scratch) / "photographs", 128))
        write_speech(Path(scratch) / "clips", 128)
        for case in checked_cases(args.case, list(CASES)):
            root = str(Path(scratch) / "clips") if case == "audio" else images
            profile = Profile()
            off, on = Measured(case, root, args, None), Measured(case, root, args, profile)
            batches = args.batches * (50 if case == "small" else 1)
            for each in (off, on, off, on):
                each.run(batches)
            (recorder,) = profile.recorders
            rows, samples = _rows(recorder), on.samples
            looked, clock = _looking(), time.perf_counter()
            for number in range(args.rounds):
                for each in (off, on) if number % 2 else (on, off):
                    each.round(batches, looks=each is on)
            table.add_row(
                case,
                *(f"{statistics.median(each.costs) * 1e6:,.1f}" for each in (off, on)),
                _ratio(on.costs, off.costs),
                _ratio(on.walls, off.walls),
                f"{(_rows(recorder) - rows) / (on.samples - samples):.2f}",
                f"{(_looking() - looked) / (time.perf_counter() - clock):.2%}",
            )
            del off, on
    Console(width=120).print(table)


def _rows(recorder: Any) -> int:
    return sum(len(rows.array()) for rows in list(recorder.lanes.values()))


if __name__ == "__main__":
    main()
