from __future__ import annotations

import threading

import pytest

from headrace.kernels.cpu.locked_cache import locked_cache


def test_threads_that_ask_together_get_one_thing():
    barrier = threading.Barrier(4)
    made = []

    @locked_cache
    def thing(key):
        made.append(key)
        return object()

    found = []

    def ask():
        barrier.wait()
        found.append(thing("a"))

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert made == ["a"]
    assert len(set(map(id, found))) == 1
    assert thing("b") is not found[0]


def test_what_failed_is_tried_again():
    attempts = []

    @locked_cache
    def thing():
        attempts.append(1)
        if len(attempts) == 1:
            raise ValueError("not yet")
        return 5

    with pytest.raises(ValueError, match="not yet"):
        thing()
    assert thing() == 5
    assert thing() == 5
    assert len(attempts) == 2
