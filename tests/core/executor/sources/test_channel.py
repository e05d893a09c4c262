"""Connections between processes."""

from __future__ import annotations

import os

import pytest

from headrace.executor.monitor import Wakeup
from headrace.executor.sources.channel import Channel, wait_for_any


def test_waiting_for_any_of_several():
    ends = [[Channel(end) for end in Channel.pair()] for _ in range(3)]
    ours, theirs = zip(*ends, strict=True)
    assert wait_for_any(ours, 0) == []
    theirs[1].send("a message")
    theirs[2].close()
    assert wait_for_any(ours, 0) == [1, 2]
    # As a program does that ends while a thread of it waits.
    ours[0].close()
    assert wait_for_any(ours, 0) == [0]
    for channel in (*ours, *theirs):
        channel.close()


@pytest.mark.skipif(not hasattr(os, "eventfd"), reason="needs Linux")
def test_a_wait_that_is_ended_from_outside():
    ours, theirs = map(Channel, Channel.pair())
    wakeup = Wakeup()
    wakeup.set()
    assert wait_for_any([ours], 10, wakeup.fileno()) == []
    assert wakeup.was_set()
    assert not wakeup.was_set()
    theirs.send("a message")
    assert wait_for_any([ours], 10, wakeup.fileno()) == [0]
    for channel in (ours, theirs):
        channel.close()
