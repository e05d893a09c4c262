"""The states of an iteration."""

from __future__ import annotations

import itertools

import pytest

from headrace.executor.iteration import (
    BEGINNING,
    COMPLETING,
    DONE,
    OWNED,
    QUEUED,
    RUNNING,
    SCHEDULED,
    TRANSITIONS,
    Iteration,
    IterationState,
)


def reached(first):
    """All states that follow on `first`."""
    found, left = set(), [first]
    while left:
        for state in TRANSITIONS[left.pop()] - found:
            found.add(state)
            left.append(state)
    return found


def test_the_table_leads_from_the_queue_to_the_end():
    assert set(TRANSITIONS) == set(IterationState)
    assert reached(SCHEDULED) == set(IterationState) - {SCHEDULED}
    assert not TRANSITIONS[DONE]
    for state in set(IterationState) - {DONE}:
        assert DONE in reached(state)


def test_what_a_thread_owns_can_be_ended_or_goes_to_another_owner():
    for state in OWNED:
        assert TRANSITIONS[state] & {DONE, *OWNED}


def test_a_change_that_the_table_does_not_have_is_refused():
    for state, following in itertools.product(IterationState, IterationState):
        iteration = Iteration(7, 2, {})
        iteration.state = state
        if following in TRANSITIONS[state]:
            iteration.change(following)
            assert iteration.state is following
            continue
        with pytest.raises(RuntimeError, match=f"7 cannot change from {state.name} to"):
            iteration.change(following)
        assert iteration.state is state


def test_who_is_waited_for():
    iteration = Iteration(0, 2, {})
    for state in (SCHEDULED, QUEUED, RUNNING, DONE):
        iteration.state = state
        assert not iteration.is_busy
    for state in (BEGINNING, COMPLETING):
        iteration.state = state
        assert iteration.is_busy
    iteration.state = RUNNING
    iteration.in_flight = 1
    assert iteration.is_busy
