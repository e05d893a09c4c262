"""Headrace beside other libraries on the same work, each in a process of its own.

    hatch run compare:run                             all cases
    hatch run compare:run --case train --rounds 9
    hatch run compare:run --python FFCV=$(hatch run compare-ffcv:where)

They take turns, in rounds of some seconds. Figures are kept in `benchmarks/comparison.json`, of
which docs/comparison.md is made (`hatch run test:generate`).
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks.compare import work
from benchmarks.compare.peers.table import NAMES, library
from benchmarks.support.harness import Peer, checked_cases, measure

RECORD = Path(__file__).parents[1] / "comparison.json"


class Served(Peer):
    """A library in its own process."""

    def __init__(self, name: str, case: str, folder: Path, python: str) -> None:
        super().__init__(name, lambda: 0)
        self.figures: list[dict[str, float]] = []
        self._process = subprocess.Popen(
            [python, "-W", "ignore", "-m", "benchmarks.compare.serve", name, case, str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )
        self.about = self._answer()

    def run(self, seconds: float) -> float:
        """Samples per second of a round."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{seconds}\n")
        figures = self._answer()
        self.figures.append(figures)
        return figures["samples"] / figures["seconds"]

    def close(self) -> None:
        """End the process."""
        self._process.stdin.close()  # type: ignore[union-attr]
        self._process.wait()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"it ended with status {self._process.wait()}")
        answer: dict[str, Any] = json.loads(line)
        return answer


def run_case(case: str, folder: Path, args: argparse.Namespace) -> dict[str, Any]:
    """The record of one case: figures of each round of each library, and why others have none."""
    peers: list[Served] = []
    without: dict[str, str] = {}
    for name in args.library or NAMES:
        if case in library(name).lacks:
            without[name] = library(name).lacks[case]
            continue
        try:
            peers.append(Served(name, case, folder, args.pythons.get(name, sys.executable)))
        except RuntimeError as error:
            without[name] = f"not measured: {error}"
    try:
        measure(peers, rounds=args.rounds, seconds=args.seconds, swapped=True)
    finally:
        for peer in peers:
            peer.close()
    return {
        "work": work.CASES[case],
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "machine": machine(),
        "rounds": args.rounds,
        "seconds": args.seconds,
        "peers": {
            p.name: {"how": library(p.name).how, **p.about, "figures": p.figures[-args.rounds :]}
            for p in peers
        },
        "without": without,
    }


def machine() -> dict[str, Any]:
    """What it was measured on."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    model = next((line.partition(":")[2].strip() for line in lines if "model name" in line), "?")
    return {
        "processor": model,
        "cores": len(os.sched_getaffinity(0)),
        "system": f"{platform.system()} {platform.machine()}",
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30),
        "load": round(os.getloadavg()[2], 1),
    }


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--case", action="append", help="may be repeated; default: all")
    parser.add_argument("--library", action="append", choices=NAMES, help="default: all")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3.0, help="of one round of a library")
    parser.add_argument("--python", action="append", default=[], metavar="LIBRARY=INTERPRETER")
    parser.add_argument("--no-record", action="store_true", help="figures are not kept")
    args = parser.parse_args()
    args.pythons = dict(entry.split("=", 1) for entry in args.python)
    return args


def main() -> None:
    """Measure what the command line asks for, and keep it."""
    args = _arguments()
    with tempfile.TemporaryDirectory() as scratch:
        work.write_files(Path(scratch))
        for case in checked_cases(args.case, tuple(work.CASES)):
            record = run_case(case, Path(scratch), args)
            for name, peer in record["peers"].items():
                rates = sorted(f["samples"] / f["seconds"] for f in peer["figures"])
                Console().print(f"{case:10} {name:16} {rates[len(rates) // 2]:10,.1f} samples/s")
            for name, why in record["without"].items():
                Console().print(f"{case:10} {name:16} {why}")
            if not args.no_record:
                known = json.loads(RECORD.read_text()) if RECORD.exists() else {}
                RECORD.write_text(json.dumps(known | {case: record}, indent=1) + "\n")


if __name__ == "__main__":
    main()
