"""What of a sweep runs always is a fair part of it."""

from __future__ import annotations

import itertools
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.sweeps import is_nightly

ROOT = Path(__file__).parents[2]


def test_every_value_of_every_parameter_runs_always():
    shape = {"dtype": 9, "layout": 4, "extra": 3}
    cases = [
        dict(zip(shape, values, strict=True))
        for values in itertools.product(*map(range, [9, 4, 3]))
    ]
    nightly = is_nightly("test_types", cases)
    assert nightly == is_nightly("test_types", cases)
    kept = [case for case, late in zip(cases, nightly, strict=True) if not late]
    assert len(kept) == 9
    for name, count in shape.items():
        assert {case[name] for case in kept} == set(range(count))


def test_every_pair_of_values_runs_always_where_that_is_asked_for():
    shape = {"policy": 3, "size": 4, "pad": 2, "auto": 2}
    cases = [
        dict(zip(shape, values, strict=True))
        for values in itertools.product(*map(range, shape.values()))
    ]
    nightly = is_nightly("test_iterators", cases, pairs=True)
    kept = [case for case, late in zip(cases, nightly, strict=True) if not late]
    assert 12 <= len(kept) <= 16
    for one, other in itertools.combinations(shape, 2):
        assert len({(case[one], case[other]) for case in kept}) == shape[one] * shape[other]


def test_what_has_one_parameter_runs_always():
    assert not any(is_nightly("test_types", [{"dtype": k} for k in range(20)]))


@pytest.mark.sweep
@pytest.mark.parametrize("one", range(4))
@pytest.mark.parametrize("other", range(4))
def test_a_sweep(one, other):
    assert one < 4
    assert other < 4


def test_the_rest_of_a_sweep_is_left_to_nightly_runs():
    always, nightly = collected(), collected("-m", "nightly")
    assert len(always) == 4
    assert not always & nightly
    assert len(always | nightly) == 16


def collected(*options):
    """Cases of `test_a_sweep` that pytest chooses."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", *options, __file__],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return {line for line in done.stdout.splitlines() if "::test_a_sweep[" in line}
