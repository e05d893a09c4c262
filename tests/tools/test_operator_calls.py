"""The benchmark of single operators has every operator of DALI's that runs on the CPU."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path

from benchmarks.support.operator_calls import CALLS, ELSEWHERE
from benchmarks.support.operator_feeds import FEEDS

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests" / "data"


def test_every_operator_of_the_cpu_is_measured_or_a_reason_is_given():
    declared = json.loads((DATA / "dali_operator_arguments.json").read_text())
    wanted = {
        name
        for name, facts in declared.items()
        if "cpu" in facts["devices"] and not (facts["hidden"] or facts["deprecated"])
    }
    measured = {call.operator for call in CALLS.values()}
    left = {name for name in wanted - measured if not name.startswith(tuple(ELSEWHERE))}
    assert not left
    assert not measured.intersection(ELSEWHERE)


def test_calls_name_feeds_that_there_are():
    assert {kind for call in CALLS.values() for kind in call.feeds} <= FEEDS.keys()


def test_figures_of_the_page_are_those_of_the_record(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "path", [str(ROOT / "tools"), *sys.path])
    comparison = importlib.import_module("comparison")
    record = json.loads(comparison.OPERATORS.read_text())
    assert record["cases"].keys() <= CALLS.keys()
    record["cases"] = {
        "flip": {"DALI": 30.0, "Headrace": 12.0},
        "copy": {"DALI": 9.0, "Headrace": 10.0},
    }
    monkeypatch.setattr(comparison, "OPERATORS", tmp_path / "operators.json")
    comparison.OPERATORS.write_text(json.dumps(record))
    table = comparison.operators()
    assert "| flip | 30 | 12 | 2.50 |" in table
    assert "2 calls: the median is 1.70 times as many samples, and 1 make fewer" in table
