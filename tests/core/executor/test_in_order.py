"""Operators that are to see iterations one after the other, whatever becomes ready first."""

from __future__ import annotations

import pytest

from tests.support.in_order import pipeline


@pytest.mark.parametrize("witnesses", [1, 3])
def test_order(witnesses):
    seen = [[] for _ in range(witnesses)]
    pipe = pipeline(seen, witnesses=witnesses)
    found = [int(pipe.run()[0].as_array()[0]) for _ in range(12)]
    assert found == list(range(12))
    for numbers in seen:
        assert numbers[:12] == list(range(12))


def test_failures_do_not_hold_up_the_next():
    seen = [[]]
    pipe = pipeline(seen, bad=(0, 2, 3))
    for k in range(12):
        if k in (0, 2, 3):
            with pytest.raises(ValueError, match=f"number {k} is bad"):
                pipe.run()
        else:
            assert int(pipe.run()[0].as_array()[0]) == k
    assert seen[0][:12] == list(range(12))


def test_a_pipeline_that_is_dropped_half_way():
    seen = [[]]
    pipe = pipeline(seen)
    pipe.run()
    del pipe
    assert seen[0] == sorted(seen[0])
