"""How long the interpreter is held for a sample: what limits how many threads are of use.

    hatch run bench:interpreter                     all cases, one thread
    hatch run bench:interpreter --case audio --threads 2 --top 20

Each case runs in a process of its own. py-spy looks at it 500 times a second and tells
which thread holds the interpreter's lock (GIL), if any does; the share of looks at which one does,
over the rate of samples, is the time that the lock is held for a sample. It includes the consumer.

A thread also holds the lock while another program has its processor. Linux tells how long threads
ran and how long they waited for a processor; only the share of the former counts, so that other
load hardly changes the figure.
"""

from __future__ import annotations

import argparse
import multiprocessing
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.support import audio_chain, graphs
from benchmarks.support.harness import checked_cases

BATCH_SIZE = 64
LOOKS_PER_SECOND = 500


def _audio(lib: Any, root: Path) -> Any:
    return audio_chain.graph_of_scalars(lib, str(root / "speech"))


def _augment(lib: Any, _: Path) -> Any:
    from benchmarks.images import decoded

    return graphs.augment(lib, decoded(BATCH_SIZE))


CASES: dict[str, Callable[[Any, Path], Any]] = {
    "train": lambda lib, root: graphs.train(lib, str(root / "images")),
    "val": lambda lib, root: graphs.validate(lib, str(root / "images")),
    "augment": _augment,
    "audio": _audio,
}


def _run(case: str, root: Path, threads: int, connection: Connection) -> None:
    """Iterate until told to stop; tell the samples and seconds between looks."""
    import penstock

    pipe = penstock.Pipeline(BATCH_SIZE, threads, None, seed=1)
    with pipe:
        outputs = CASES[case](penstock, root)
        pipe.set_outputs(*(outputs if isinstance(outputs, tuple) else (outputs,)))
    pipe.build()
    for _ in range(8):
        pipe.run()
    connection.send("ready")
    samples, start = 0, time.perf_counter()
    while not connection.poll():
        samples += len(pipe.run()[0])
    connection.send((samples, time.perf_counter() - start))


def held(case: str, root: Path, threads: int, seconds: float) -> tuple[float, float, Counter[str]]:
    """Samples a second, microseconds of a processor with the lock held for a sample, and where."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=_run, args=(case, root, threads, there))
    process.start()
    there.close()
    here.recv()
    with tempfile.NamedTemporaryFile(suffix=".txt") as out:
        command = [py_spy(), "record", "--gil", "--pid", str(process.pid)]
        command += ["--rate", str(LOOKS_PER_SECOND), "--duration", str(round(seconds))]
        command += ["--format", "raw", "--output", out.name]
        before = _scheduled(process.pid)
        subprocess.run(command, check=True, capture_output=True)
        after = _scheduled(process.pid)
        stacks = Path(out.name).read_text().splitlines()
    here.send("stop")
    samples, elapsed = here.recv()
    process.join()
    looks: Counter[str] = Counter()
    for line in stacks:
        stack, _, count = line.rpartition(" ")
        looks[stack.rpartition(";")[2]] += int(count)
    share = looks.total() / (LOOKS_PER_SECOND * round(seconds))
    ran, waited = np.sum(
        [np.subtract(now, before.get(thread, (0, 0))) for thread, now in after.items()], axis=0
    )
    share *= ran / (ran + waited)
    return samples / elapsed, 1e6 * share * elapsed / samples, looks


def _scheduled(process: int) -> dict[str, tuple[int, int]]:
    """Nanoseconds that each thread of a process ran, and waited for a processor, so far."""
    found = {}
    for thread in Path(f"/proc/{process}/task").iterdir():
        ran, waited, _ = (thread / "schedstat").read_text().split()
        found[thread.name] = int(ran), int(waited)
    return found


def py_spy() -> str:
    """Where the program is: beside the Python that runs this, or on the path."""
    own = Path(sys.executable).parent / "py-spy"
    found = str(own) if own.exists() else shutil.which("py-spy")
    if found is None:
        raise SystemExit(
            "py-spy is missing: `pip install py-spy`, or use `hatch run bench:interpreter`."
        )
    return found


def main() -> None:
    """Measure the cases that the command line asks for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--case", action="append", help="may be repeated; default: all")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=5, help="of one round")
    parser.add_argument("--top", type=int, default=0, help="print so many places, too")
    args = parser.parse_args()
    from examples.demo.photographs import write_dataset
    from examples.dynamic.speech import write_speech

    table = Table(title=f"{args.threads} thread(s), batch {BATCH_SIZE}, medians of {args.rounds}")
    for column in ("case", "samples/s", "interpreter held, us a sample"):
        table.add_column(column, justify="left" if column == "case" else "right")
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        write_dataset(root / "images", 32)
        write_speech(root / "speech", 64)
        for case in checked_cases(args.case, list(CASES)):
            rounds = [held(case, root, args.threads, args.seconds) for _ in range(args.rounds)]
            rate = statistics.median(r[0] for r in rounds)
            table.add_row(case, f"{rate:,.0f}", f"{statistics.median(r[1] for r in rounds):.1f}")
            looks = sum((r[2] for r in rounds), Counter[str]())
            for place, count in looks.most_common(args.top):
                table.add_row("", "", f"{100 * count / looks.total():4.1f} %  {place}")
    Console(width=160).print(table)


if __name__ == "__main__":
    main()
