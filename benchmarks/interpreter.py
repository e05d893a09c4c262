"""How long the interpreter is held for a sample: what limits how many threads are of use.

    hatch run bench:interpreter                     all cases, one thread
    hatch run bench:interpreter --case audio --threads 2 --top 20
    hatch run bench:interpreter --beside ../before/packages/core/src   that code, too, in turn

Each case runs in threads of a process of its own, in which each thread reads the clock of its own
processor time whenever it takes and drops the interpreter's lock (GIL): what waits for a processor
meanwhile does not count, so that other load hardly changes the figure. It includes the consumer.
Where the lock is held, py-spy tells, with `--top`: it stops the program for each look, so that its
shares are of use and times by it would not be.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
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
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table

from benchmarks.support import audio_chain, graphs
from benchmarks.support.harness import checked_cases
from benchmarks.support.lock_time import LockTime, built, preloaded

BATCH_SIZE = 64
LOOKS_PER_SECOND = 500


def _audio(lib: Any, root: Path) -> Any:
    return audio_chain.graph_of_scalars(lib, str(root / "speech"))


def _log_mel(lib: Any, root: Path) -> Any:
    return audio_chain.graph(lib, str(root / "speech"))


def _augment(lib: Any, _: Path) -> Any:
    from benchmarks.images import decoded

    return graphs.augment(lib, decoded(BATCH_SIZE))


CASES: dict[str, Callable[[Any, Path], Any]] = {
    "train": lambda lib, root: graphs.train(lib, str(root / "images")),
    "val": lambda lib, root: graphs.validate(lib, str(root / "images")),
    "augment": _augment,
    "audio": _audio,
    "log-mel": _log_mel,
}


class Held(NamedTuple):
    """One round of a case: samples a second, and for a sample, of the lock, microseconds, takes."""

    rate: float
    microseconds: float
    takes: float


def _run(
    case: str,
    root: Path,
    threads: int,
    seconds: float,
    library: Path,
    code: Path | None,
    connection: Connection,
) -> None:
    """Iterate for so long, after telling that it begins, and tell what was counted."""
    lock = LockTime(library)
    if code is not None:
        sys.path.insert(0, str(code))
    # An argument would not do for code that knows threads only.
    os.environ["HEADRACE_WORKERS"] = "threads"
    import headrace

    if code is not None and not Path(headrace.__file__).is_relative_to(code):
        raise SystemExit(f"`headrace` is imported from {headrace.__file__}, not from {code}.")
    pipe = headrace.Pipeline(BATCH_SIZE, threads, None, seed=1)
    with pipe:
        outputs = CASES[case](headrace, root)
        pipe.set_outputs(*(outputs if isinstance(outputs, tuple) else (outputs,)))
    pipe.build()
    for _ in range(8):
        pipe.run()
    connection.send("ready")
    (held, takes), samples, start = lock.read(), 0, time.perf_counter()
    while (elapsed := time.perf_counter() - start) < seconds:
        samples += len(pipe.run()[0])
    held_now, takes_now = lock.read()
    connection.send(
        Held(samples / elapsed, (held_now - held) / samples, (takes_now - takes) / samples)
    )


def held(
    case: str,
    root: Path,
    threads: int,
    seconds: float,
    library: Path,
    code: Path | None = None,
    *,
    look: bool = False,
) -> tuple[Held, Counter[str]]:
    """What is held in one round of `code`; if `look`, where, by how often it was seen there."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    # A look stops the program, so that the clock has to go on for longer.
    span = 2 * seconds if look else seconds
    measured = (case, root, threads, span, library, code, there)
    process = context.Process(target=_run, args=measured)
    with preloaded(library):
        process.start()
    there.close()
    here.recv()
    looks = _places(process.pid, seconds) if look else Counter()
    found = here.recv()
    process.join()
    return found, looks


def _places(process: int | None, seconds: float) -> Counter[str]:
    """Where threads of a process hold the lock, by how often they were seen there."""
    with tempfile.NamedTemporaryFile(suffix=".txt") as out:
        command = [py_spy(), "record", "--gil", "--pid", str(process)]
        command += ["--rate", str(LOOKS_PER_SECOND), "--duration", str(max(round(seconds), 1))]
        command += ["--format", "raw", "--output", out.name]
        subprocess.run(command, check=True, capture_output=True)
        stacks = Path(out.name).read_text().splitlines()
    looks: Counter[str] = Counter()
    for line in stacks:
        stack, _, count = line.rpartition(" ")
        looks[stack.rpartition(";")[2]] += int(count)
    return looks


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
    parser.add_argument(
        "--beside", type=lambda path: Path(path).resolve(), help="another `packages/core/src`"
    )
    args = parser.parse_args()
    from examples.demo.photographs import write_dataset
    from examples.dynamic.speech import write_speech

    table = Table(title=f"{args.threads} thread(s), batch {BATCH_SIZE}, medians of {args.rounds}")
    for column in ("case", "samples/s", "interpreter held, us a sample", "taken, times a sample"):
        table.add_column(column, justify="left" if column == "case" else "right")
    codes = {"": None} if args.beside is None else {"": None, " (beside)": args.beside}
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        library = built(root)
        write_dataset(root / "images", 32)
        write_speech(root / "speech", 64)
        for case in checked_cases(args.case, list(CASES)):
            measured: Any = root, args.threads, args.seconds, library
            rounds: dict[str, list[Held]] = {name: [] for name in codes}
            for _ in range(args.rounds):
                for name, code in codes.items():
                    rounds[name].append(held(case, *measured, code)[0])
            for name, figures in rounds.items():
                rate, micros, takes = map(statistics.median, zip(*figures, strict=True))
                table.add_row(case + name, f"{rate:,.0f}", f"{micros:.1f}", f"{takes:.1f}")
            looks = held(case, *measured, look=True)[1] if args.top else Counter()
            for place, count in looks.most_common(args.top):
                table.add_row("", "", f"{100 * count / looks.total():4.1f} %  {place}")
    Console(width=160).print(table)


if __name__ == "__main__":
    main()
