"""The benchmark of single operators has every operator of DALI's that runs on the CPU."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.support.operator_calls import CALLS, ELSEWHERE
from benchmarks.support.operator_feeds import FEEDS

DATA = Path(__file__).parents[1] / "data"


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
