"""`InlineChoice`: who launches stages is found out by measuring."""

from __future__ import annotations

import pytest

from headrace.executor.inline_choice import InlineChoice

SOON = 1e-4
"""How long the consumer is away."""


class Loop:
    """A consumer that takes iterations, on a clock of its own."""

    def __init__(self):
        self.choice = InlineChoice()
        self.now = 1.0
        self.found = []
        """Who launched each iteration."""

    def take(self, iterations, *, inline, ahead, away=SOON):
        """Take iterations that make it wait for so long where it is `inline`, and else."""
        for _ in range(iterations):
            self.now += away
            is_inline = self.choice.begin_waiting(self.now)
            self.found.append(is_inline)
            self.now += inline if is_inline else ahead
            self.choice.end_waiting(self.now)
        return self.found[-1]


@pytest.mark.parametrize(
    ("inline", "ahead", "expected"),
    [
        (2e-4, 4e-4, True),
        (4e-4, 2e-4, False),
        (2e-4, 2e-4, True),
        (2.4e-4, 2e-4, True),
        (3e-4, 2e-4, False),
    ],
)
def test_what_is_quicker_is_chosen(inline, ahead, expected):
    """Threads that work ahead take more of the processor, so they have to be quicker."""
    loop = Loop()
    assert loop.take(400, inline=inline, ahead=ahead) is expected
    assert set(loop.found[:200]) == {True, False}  # both were tried


@pytest.mark.parametrize("slow", [(64, 112), (112, 170), (150, 208)])
def test_a_machine_that_is_slower_for_a_while_changes_nothing(slow):
    loop = Loop()
    for number in range(400):
        factor = 1.5 if number in range(*slow) else 1.0
        loop.take(1, inline=factor * 4e-4, ahead=factor * 4e-4)
    assert loop.found[-1]


def test_how_long_the_consumer_is_away_does_not_matter_by_itself():
    loop = Loop()
    # With threads that work ahead it is away for as long as it waits for the interpreter.
    for _ in range(400):
        away = SOON if loop.choice.is_inline else 8e-4
        loop.take(1, inline=3e-4, ahead=0.0, away=away)
    assert loop.found[-1]


def test_a_consumer_that_is_busy_has_threads_work_ahead():
    loop = Loop()
    assert loop.take(400, inline=2e-4, ahead=4e-4)
    assert not loop.take(20, inline=2e-4, ahead=4e-4, away=3e-3)
    tried = len(loop.found)
    loop.take(400, inline=2e-4, ahead=4e-4, away=3e-3)
    assert True not in loop.found[tried:]
    assert loop.take(400, inline=2e-4, ahead=4e-4)


def test_a_consumer_that_is_busy_at_times_does_not_begin_trials():
    loop = Loop()
    assert not loop.take(400, inline=4e-4, ahead=2e-4)
    tried = len(loop.found)
    for _ in range(4):
        loop.take(20, inline=4e-4, ahead=2e-4, away=3e-3)
        loop.take(60, inline=4e-4, ahead=2e-4)
    assert True not in loop.found[tried:]


def test_one_pause_changes_nothing():
    loop = Loop()
    loop.take(400, inline=2e-4, ahead=4e-4)
    loop.take(1, inline=2e-4, ahead=4e-4, away=60.0)
    assert loop.take(1, inline=2e-4, ahead=4e-4)


def test_a_pause_in_a_trial_does_not_count():
    loop = Loop()
    for _ in range(400):
        pauses = loop.found.count(True) == 20  # in the trial of one of the two
        loop.take(1, inline=2e-4, ahead=4e-4, away=1.0 if pauses else SOON)
    assert loop.found[-1]


def test_it_is_tried_again_later():
    loop = Loop()
    assert loop.take(400, inline=2e-4, ahead=4e-4)
    loop.take(3000, inline=7e-4, ahead=4e-4)
    assert not loop.found[-1]


def test_trials_become_rare():
    loop = Loop()
    loop.take(60_000, inline=2e-4, ahead=4e-4)
    assert loop.found[-30_000:].count(False) < 200
