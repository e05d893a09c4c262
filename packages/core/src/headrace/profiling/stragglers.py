"""Ranks of a training that are slower than the others, and the operators that make them so."""

from __future__ import annotations

import json
import os
import socket
import statistics
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from headrace.errors import ArgumentTypeError, ArgumentValueError

if TYPE_CHECKING:
    from headrace.profiling.figures import Figures

_RANKS = ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID")
_FIELDS = ("rank", "host", "samples_per_second", "consumer_waits", "operators")


def own_rank() -> int | None:
    """The number of this process among those of a training, from what starts it; None alone."""
    found = next((os.environ[name] for name in _RANKS if os.environ.get(name)), "")
    return int(found) if found.isdecimal() else None


def rank_report(figures: Figures, rank: int | None) -> dict[str, Any]:
    """Figures of this rank, of plain types."""
    return {
        "rank": own_rank() if rank is None else rank,
        "host": socket.gethostname(),
        "samples_per_second": figures.samples_per_second,
        "consumer_waits": figures.consumer_waits + figures.consumer_asks,
        "operators": {
            operator.label.name: operator.microseconds_per_sample for operator in figures.operators
        },
    }


class Straggler(NamedTuple):
    """An operator that is slow on one rank.

    `rank`, `host`: the rank, and its machine. `operator`: name of the operator. `microseconds`:
    time of a thread for a sample there. `median`: the same on the median rank.
    """

    rank: int | None
    host: str
    operator: str
    microseconds: float
    median: float

    @property
    def factor(self) -> float:
        """Time there, as a multiple of the median."""
        return self.microseconds / self.median if self.median else float("inf")


class Stragglers:
    """Slow ranks and operators of a training; it prints as a table.

    `ranks`: the reports, those of ranks that wait longest for data first. `slow`: operators that
    are slow on a rank, those that cost most first.
    """

    def __init__(self, reports: list[dict[str, Any]], slow: list[Straggler]) -> None:
        self.ranks = sorted(reports, key=lambda report: -report["consumer_waits"])
        self.slow = slow

    def __repr__(self) -> str:
        return f"Stragglers(ranks={len(self.ranks)}, slow={len(self.slow)})"

    def __str__(self) -> str:
        lines = [f"{'rank':>5}  {'host':<20} {'samples/s':>10} {'waits':>6}"]
        lines += [
            f"{_text(r['rank']):>5}  {r['host'][:20]:<20} {r['samples_per_second']:>10,.0f} "
            f"{100 * r['consumer_waits']:>4.0f} %"
            for r in self.ranks
        ]
        lines.append("")
        lines += [
            f"rank {_text(s.rank)} on {s.host}: {s.operator} takes {s.microseconds:,.0f} "
            f"microseconds a sample, {s.factor:.1f} times the median ({s.median:,.0f})."
            for s in self.slow
        ]
        if not self.slow:
            lines.append("No operator is slow on one rank and not on the others.")
        return "\n".join(lines)


def _text(rank: int | None) -> str:
    return "-" if rank is None else str(rank)


def stragglers(
    reports: str | os.PathLike[str] | Iterable[Mapping[str, Any]], *, factor: float = 1.5
) -> Stragglers:
    """Tell which operators are slow on which ranks of a training.

    Each rank records a profile and makes a report (`Profile.rank_report`). One of them gets all
    reports: by ``torch.distributed.all_gather_object``, or from a folder that all have written to.

    Parameters
    ----------
    reports
        The reports, or a folder with one in each ``*.json``.
    factor
        An operator is slow where it takes this many times as long as on the median rank, and
        longer by at least 10 microseconds a sample and a twentieth of what all operators take.

    Raises
    ------
    ArgumentValueError, ArgumentTypeError
        If there is no report, or something else in its place.

    Examples
    --------
    >>> print(headrace.stragglers("reports"))
    """
    if factor <= 1:
        raise ArgumentValueError(f"`factor` is {factor}; it has to be more than 1.")
    if isinstance(reports, (str, os.PathLike)):
        folder = Path(reports)
        given: list[Any] = [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]
        where = f"in {str(folder)!r}"
    else:
        given, where = list(reports), "in `reports`"
    if not given:
        raise ArgumentValueError(
            f"There is no report {where}: each rank writes one, with `Profile.rank_report`."
        )
    for number, report in enumerate(given):
        if not isinstance(report, Mapping) or not set(_FIELDS) <= set(report):
            raise ArgumentTypeError(
                f"Report {number} {where} is {report!r:.80}; expected what `Profile.rank_report` "
                f"gives, with {', '.join(_FIELDS)}."
            )
    slow = []
    for name in dict.fromkeys(name for report in given for name in report["operators"]):
        times = [report["operators"][name] for report in given if name in report["operators"]]
        median = statistics.median(times)
        slow += [
            Straggler(r["rank"], r["host"], name, r["operators"][name], median)
            for r in given
            if r["operators"].get(name, 0)
            >= max(factor * median, median + max(10, sum(r["operators"].values()) / 20))
        ]
    slow.sort(key=lambda s: s.median - s.microseconds)
    return Stragglers([dict(report) for report in given], slow)
