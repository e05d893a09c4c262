"""Connections between processes."""

from __future__ import annotations

from penstock.executor.sources.channel import Channel, wait_for_any


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
