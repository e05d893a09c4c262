"""Measure several peers in turn, and compare them by the median of their rates.

The machine may be shared and its speed may drift: peers alternate in short rounds, so that each
sees the same conditions, and figures are ratios of medians.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from rich.console import Console
from rich.table import Table

from benchmarks.support.processor_time import seconds_of_all

_IDLE_SECONDS = 0.03
"""What the look at all processes itself may take of a processor in 50 ms."""

Step = Callable[[], int]
"""Does one batch of work and returns the number of samples in it."""


@dataclass
class Peer:
    """One implementation of a case."""

    name: str
    step: Step
    finish: Callable[[], None] | None = None
    """Waits for what the steps have only queued; a round ends with it."""
    ahead: int = 1
    """How many batches it makes ahead of the one that is asked for."""
    by_processor: bool = False
    """Whether seconds are those of processors, with worker processes: others use the machine."""
    rates: list[float] = field(default_factory=list)
    """Samples per second, one for each round."""

    @property
    def rate(self) -> float:
        """Median samples per second."""
        return statistics.median(self.rates)

    def run(self, seconds: float) -> float:
        """Samples per second of a round of about `seconds`."""
        for _ in range(self.ahead + 1):
            self.step()  # what was made ready while others ran is not counted
        clock = seconds_of_all if self.by_processor else time.perf_counter
        samples = 0
        start, began = time.perf_counter(), clock()
        while time.perf_counter() - start < seconds:
            samples += self.step()
        if self.finish is not None:
            self.finish()
        return samples / (clock() - began)


def checked_cases(wanted: Sequence[str] | None, known: Sequence[str]) -> Sequence[str]:
    """The cases that the command line asks for; all if it names none."""
    if unknown := set(wanted or ()) - set(known):
        missing, names = ", ".join(sorted(unknown)), ", ".join(known)
        raise SystemExit(f"There is no case {missing}; there are: {names}.")
    return wanted or known


def measure(
    peers: Sequence[Peer],
    *,
    rounds: int = 5,
    seconds: float = 1.5,
    warm_up_seconds: float | None = None,
    swapped: bool = False,
) -> None:
    """Run all peers in turn, `rounds` times for `seconds` each, after a warm-up of half of that, or
    of `warm_up_seconds`; every second round backwards where they are to be `swapped`.
    """
    for peer in peers:
        peer.run(seconds / 2 if warm_up_seconds is None else warm_up_seconds)
        _come_to_rest()
    for number in range(rounds):
        for peer in reversed(peers) if swapped and number % 2 else peers:
            peer.rates.append(peer.run(seconds))
            _come_to_rest()


def _come_to_rest() -> None:
    """Wait until nobody makes batches ahead any more, or for two seconds.

    Sixteen programs of two batches each are at that for a third of a second of all processors,
    which the next peer would miss.
    """
    before = seconds_of_all()
    for _ in range(40):
        time.sleep(0.05)
        now = seconds_of_all()
        if now - before <= _IDLE_SECONDS:
            return
        before = now


def print_table(
    title: str, cases: Mapping[str, Sequence[Peer]], *, reference: str = "DALI"
) -> None:
    """Print, for each case, the medians of all peers and their ratios to `reference`."""
    names = list(dict.fromkeys(p.name for peers in cases.values() for p in peers))
    table = Table(title=title)
    table.add_column("case")
    for name in names:
        table.add_column(f"{name}\nsamples/s", justify="right")
    for name in names:
        if name != reference:
            table.add_column(f"{name}\n/ {reference}", justify="right")
    for case, peers in cases.items():
        by_name = {p.name: p for p in peers}
        base = by_name.get(reference)
        row = [case]
        row += [f"{by_name[n].rate:,.0f}" if n in by_name else "-" for n in names]
        for name in names:
            if name != reference:
                known = name in by_name and base is not None
                row.append(f"{by_name[name].rate / base.rate:.2f}x" if known else "-")
        table.add_row(*row)
    Console(width=140).print(table)
