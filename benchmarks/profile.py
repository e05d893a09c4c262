"""What a profile costs: the same pipeline with and without one, in turn.

    hatch run bench:profile
    hatch run bench:profile --case train --rounds 20

Rounds alternate, so that both see the same machine; the figure is the median of the ratios of
neighbouring rounds, with its quartiles. The cost is the processor time of a sample, on over off,
which depends less on what else the machine does.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import penstock
from benchmarks.support import graphs
from benchmarks.support.harness import Peer, checked_cases
from examples.demo.photographs import write_dataset
from penstock import fn
from penstock.profiling import Profile

BATCH_SIZE = 64


def _small(_: Any, __: str) -> Any:
    """Hardly any work for a sample: all that there is to record costs most here."""
    return fn.cast(fn.random.uniform(shape=(8,)) * 2 + 1, dtype=penstock.types.INT32)


CASES: dict[str, Callable[[Any, str], Any]] = {
    "train": graphs.train,
    "val": graphs.validate,
    "small": _small,
}


@dataclass
class CountingPeer(Peer):
    """A peer that knows how many samples it has made, those between rounds, too."""

    samples: int = 0

    def __post_init__(self) -> None:
        make = self.step

        def step() -> int:
            made = make()
            self.samples += made
            return made

        self.step = step


def _peer(name: str, case: str, root: str, args: argparse.Namespace, profile: Any) -> CountingPeer:
    pipe = penstock.Pipeline(
        BATCH_SIZE, args.threads, None, seed=1, workers=args.workers, profile=profile
    )
    with pipe:
        outputs = CASES[case](penstock, root)
        pipe.set_outputs(*(outputs if isinstance(outputs, tuple) else (outputs,)))

    return CountingPeer(name, lambda: len(pipe.run()[0]), ahead=2)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--case", action="append", help="may be repeated; all by default")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--seconds", type=float, default=1.0, help="of a round")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--workers", default="threads")
    args = parser.parse_args()
    table = Table(
        "case", "samples/s off", "samples/s on", "off / on", "quartiles", "cost", "quartiles"
    )
    with tempfile.TemporaryDirectory() as scratch:
        root = str(write_dataset(Path(scratch) / "photographs", 128))
        for case in checked_cases(args.case, list(CASES)):
            off = _peer("off", case, root, args, None)
            on = _peer("on", case, root, args, Profile())
            for peer in (off, on):
                peer.run(args.seconds)
            used: dict[str, list[float]] = {"off": [], "on": []}
            for number in range(args.rounds):
                for peer in (off, on) if number % 2 else (on, off):
                    began, samples = time.process_time(), peer.samples
                    peer.rates.append(peer.run(args.seconds))
                    spent = (time.process_time() - began) / (peer.samples - samples)
                    used[peer.name].append(spent)
            ratios = [a / b for a, b in zip(off.rates, on.rates, strict=True)]
            low, middle, high = np.quantile(ratios, [0.25, 0.5, 0.75])
            costs = [a / b for a, b in zip(used["on"], used["off"], strict=True)]
            low_cost, cost, high_cost = np.quantile(costs, [0.25, 0.5, 0.75])
            table.add_row(
                case,
                f"{statistics.median(off.rates):,.0f}",
                f"{statistics.median(on.rates):,.0f}",
                f"{middle:.3f}",
                f"{low:.3f} .. {high:.3f}",
                f"{cost:.3f}",
                f"{low_cost:.3f} .. {high_cost:.3f}",
            )
    Console().print(table)


if __name__ == "__main__":
    main()
