"""Single operators on typical data beside DALI, each library in a process of its own.

    hatch run bench:operators                                all of them, some ten minutes
    hatch run bench:operators --case resize --rounds 15      those whose names have the word
    hatch run bench:operators --write                        also into operators.json

Each is between an external source, which copies nothing, and the output, on one thread, in batches
of 32. Figures are microseconds of a processor for a sample, the least of many short rounds in
turn, so that others may use the machine; feeding is included, and is a row of its own
(`external_source`). docs/single-operators.md is made of operators.json (`hatch run test:generate`).
"""

from __future__ import annotations

import argparse
import datetime
import gc
import json
import time
import warnings
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.compare.__main__ import machine
from benchmarks.support.apart import Apart
from benchmarks.support.harness import Peer
from benchmarks.support.libraries import library
from benchmarks.support.operator_calls import CALLS
from benchmarks.support.operator_feeds import BATCH, feed

RECORD = Path(__file__).with_suffix(".json")
PEERS = ("DALI", "Headrace")


class _Processor(Peer):
    """A pipeline whose rounds are timed by what this process takes of a processor."""

    def run(self, seconds: float) -> float:
        """Samples per second of a processor in a round of about `seconds` of it."""
        for _ in range(self.ahead + 1):
            self.step()
        samples, begin = 0, time.process_time()
        spent = 0.0
        while spent < seconds:
            samples += self.step()
            spent = time.process_time() - begin
        return samples / spent


def pipeline(name: str, case: str, threads: int) -> Peer:
    """A pipeline of one operator."""
    warnings.simplefilter("ignore")
    gc.collect()  # the peer before this one, with its threads and batches
    lib, call = library(name), CALLS[case]
    pipe = lib.Pipeline(batch_size=BATCH, num_threads=threads, device_id=None, seed=1)
    with pipe:
        fed = [_source(lib, *feed(kind)) for kind in call.feeds]
        pipe.set_outputs(*call.outputs(lib, *fed))
    pipe.build()

    def step() -> int:
        pipe.run()
        return BATCH

    for _ in range(3):
        step()  # what is compiled, is compiled now
    return _Processor(name, step, ahead=2)


def _source(lib: Any, layout: str, rows: list[Any]) -> Any:
    return lib.fn.external_source(source=lambda: rows, layout=layout, no_copy=True)


def measured(case: str, homes: list[Apart], args: argparse.Namespace) -> dict[str, list[float]]:
    """Microseconds of a processor for a sample, of each round, by library."""
    peers = [home.peer(pipeline, home.name, case, args.threads) for home in homes]
    for number in range(args.rounds):
        for peer in reversed(peers) if number % 2 else peers:
            peer.rates.append(peer.run(args.seconds))
    return {peer.name: [1e6 / rate for rate in peer.rates] for peer in peers}


def least(figures: dict[str, list[float]]) -> dict[str, float]:
    """The least of all rounds, by library."""
    return {name: round(min(times), 2) for name, times in figures.items()}


def table(cases: dict[str, dict[str, float]]) -> Table:
    """The figures, those that are furthest behind at the top."""
    made = Table(title=f"one operator, one thread, batches of {BATCH}: us of a processor a sample")
    made.add_column("operator")
    for name in (*PEERS, "DALI / Headrace"):
        made.add_column(name, justify="right")
    for case, by in sorted(cases.items(), key=lambda item: item[1]["DALI"] / item[1]["Headrace"]):
        ratio = by["DALI"] / by["Headrace"]
        made.add_row(case, *(f"{by[name]:,.2f}" for name in PEERS), f"{ratio:.2f}")
    return made


def main() -> None:
    """Measure what the command line asks for, and print it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--case", action="append", help="words of the names of cases")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=0.1, help="of a processor, in a round")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--write", action="store_true", help="keep the figures in operators.json")
    args = parser.parse_args()
    cases = [c for c in CALLS if not args.case or any(word in c for word in args.case)]
    if not cases:
        raise SystemExit(f"There is no such case; there are: {', '.join(CALLS)}.")
    found = {}
    with Apart("DALI") as dali, Apart("Headrace") as headrace:
        for case in cases:
            found[case] = least(measured(case, [dali, headrace], args))
            by = found[case]
            Console().print(f"{case:50} {by['DALI'] / by['Headrace']:8.2f}", highlight=False)
    Console(width=140).print(table(found))
    if args.write:
        known = json.loads(RECORD.read_text())["cases"] if RECORD.exists() else {}
        kept = {case: {**known, **found}[case] for case in CALLS if case in {**known, **found}}
        about = {
            "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
            "machine": machine(),
            "rounds": args.rounds,
            "seconds": args.seconds,
        }
        RECORD.write_text(json.dumps({**about, "cases": kept}, indent=1) + "\n")


if __name__ == "__main__":
    main()
