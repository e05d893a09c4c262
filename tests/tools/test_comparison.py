"""The comparison with other libraries: its cases, and the tables of its record."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path

import pytest

from benchmarks.compare.peers.table import NAMES, library
from benchmarks.compare.work import CASES

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", NAMES)
def test_each_case_is_done_or_a_reason_is_given(name):
    chosen = library(name)
    assert chosen.does.keys() | chosen.lacks.keys() == CASES.keys()
    assert not chosen.does.keys() & chosen.lacks.keys()


def test_figures_of_the_page_are_those_of_the_record(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "path", [str(ROOT / "tools"), *sys.path])
    comparison = importlib.import_module("comparison")
    record = json.loads(comparison.RECORD.read_text())
    assert record.keys() == CASES.keys()
    case = record["train"]
    case["peers"] = {name: case["peers"][name] for name in ("Headrace", "DALI")}
    for entry, rates in zip(
        case["peers"].values(), ([900, 1200, 1000], [300, 800, 250]), strict=True
    ):
        entry["figures"] = [{"samples": r * 2, "seconds": 9, "processor_seconds": 2} for r in rates]
    case["without"] = {"Grain": "it is away"}
    monkeypatch.setattr(comparison, "RECORD", tmp_path / "record.json")
    comparison.RECORD.write_text(json.dumps({"train": case}))
    tables = comparison.tables()
    assert "| Headrace | 1,000 | 900 – 1,200 |  |" in tables
    assert "| DALI | 300 | 250 – 800 | 3.00 times as many |" in tables  # of ratios 3, 1.5 and 4
    assert "| Grain | | | it is away |" in tables
    assert case["peers"]["DALI"]["versions"]["nvidia-dali-cuda130"] in tables
