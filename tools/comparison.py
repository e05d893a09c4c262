"""Tables of Headrace beside other libraries, from the records that benchmarks leave."""

from __future__ import annotations

import json
import statistics
from typing import Any

from generated import ROOT

RECORD = ROOT / "benchmarks" / "comparison.json"
OPERATORS = ROOT / "benchmarks" / "operators.json"
_OURS = "Headrace"


def tables() -> str:
    """A section for each case, and one on versions."""
    record = json.loads(RECORD.read_text())
    lines: list[str] = []
    for name, case in record.items():
        lines += _case(name, case)
    return "\n".join([*lines, *_versions(record)])


def operators() -> str:
    """A table of single operators beside DALI, and what they were measured on."""
    record = json.loads(OPERATORS.read_text())
    cases = record["cases"]
    lines = ["| operator | DALI | Headrace | times as many |", "|---|---|---|---|"]
    for name in sorted(cases, key=str.lower):
        theirs, ours = cases[name]["DALI"], cases[name][_OURS]
        lines.append(f"| {name} | {theirs:,.3g} | {ours:,.3g} | {theirs / ours:.2f} |")
    ratios = [by["DALI"] / by[_OURS] for by in cases.values()]
    slower = sum(ratio < 1 for ratio in ratios)
    about = (
        f"{len(ratios)} calls: the median is {statistics.median(ratios):.2f} times as many "
        f"samples, and {slower} make fewer than DALI. {_measured(record)}; {record['rounds']} "
        f"rounds of {record['seconds']:g} s."
    )
    return "\n".join([*lines, "", about])


def _measured(record: dict[str, Any]) -> str:
    machine = record["machine"]
    return (
        f"{record['date']}, {machine['processor']}, {machine['cores']} cores, "
        f"{machine['memory_gib']} GiB, {machine['system']}; load of the machine {machine['load']}"
    )


def _case(name: str, case: dict[str, Any]) -> list[str]:
    ours = _rates(case["peers"][_OURS])
    lines = [
        f"## {name.capitalize()}",
        "",
        f"{case['work'][:1].upper()}{case['work'][1:]}.",
        "",
        f"| library | samples for a second of a processor | from – to | {_OURS} makes |",
        "|---|---|---|---|",
    ]
    ranked = sorted(case["peers"].items(), key=lambda item: -statistics.median(_rates(item[1])))
    for peer, entry in ranked:
        rates = _rates(entry)
        times = statistics.median(a / b for a, b in zip(ours, rates, strict=True))
        shown = "" if peer == _OURS else f"{times:.2f} times as many"
        lines.append(
            f"| {peer} | {_number(statistics.median(rates))} | {_number(min(rates))} – "
            f"{_number(max(rates))} | {shown} |"
        )
    lines += [f"| {peer} | | | {why} |" for peer, why in case["without"].items()]
    options = f"--case {name} --rounds {case['rounds']} --seconds {case['seconds']:g}"
    about = f"{_measured(case)}. `hatch run compare:run {options}`"
    return [*lines, "", about, ""]


def _rates(entry: dict[str, Any]) -> list[float]:
    return [f["samples"] / f["processor_seconds"] for f in entry["figures"]]


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _versions(record: dict[str, Any]) -> list[str]:
    known: dict[str, dict[str, Any]] = {}
    for case in record.values():
        known |= case["peers"]
    lines = [
        "## What was run",
        "",
        "| library | its program | versions |",
        "|---|---|---|",
    ]
    for peer, entry in known.items():
        versions = {"Python": entry["python"], **entry["versions"]}
        shown = ", ".join(f"{name} {version}" for name, version in versions.items())
        lines.append(f"| {peer} | {entry['how']} | {shown} |")
    return lines
