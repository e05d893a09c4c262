"""Tables of Headrace beside other libraries, from the record that benchmarks/compare leaves."""

from __future__ import annotations

import json
import statistics
from typing import Any

from generated import ROOT

RECORD = ROOT / "benchmarks" / "comparison.json"
_OURS = "Headrace"


def tables() -> str:
    """A section for each case, and one on versions."""
    record = json.loads(RECORD.read_text())
    lines: list[str] = []
    for name, case in record.items():
        lines += _case(name, case)
    return "\n".join([*lines, *_versions(record)])


def _case(name: str, case: dict[str, Any]) -> list[str]:
    machine = case["machine"]
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
    about = (
        f"{case['date']}, {machine['processor']}, {machine['cores']} cores, "
        f"{machine['memory_gib']} GiB, {machine['system']}; load of the machine "
        f"{machine['load']}. `hatch run compare:run {options}`"
    )
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
