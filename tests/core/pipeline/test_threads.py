"""One pipeline, or iterator, that several threads use at once."""

from __future__ import annotations

import itertools
import threading

import numpy as np
import pytest

from headrace import fn, pipeline_def
from headrace.plugin.pytorch import DALIGenericIterator

THREADS, EACH = 4, 25


def numbers(**options):
    @pipeline_def(batch_size=2, num_threads=2, device_id=None, **options)
    def define():
        k = fn.external_source(lambda k: np.full((2, 1), k))
        return fn.python_function(k, function=lambda x: x + 0)

    return define()


def together(work, count=THREADS):
    """What `work` gives in each of several threads, which all come to their end."""
    found, begin = [], threading.Barrier(count)

    def run():
        begin.wait()
        found.append(work())

    threads = [threading.Thread(target=run, daemon=True) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not any(thread.is_alive() for thread in threads), "they wait for ever"
    return found


def number_of(batch):
    return int(np.asarray(batch[0])[0])


@pytest.mark.parametrize("options", [{}, {"prefetch_queue_depth": 1}, {"exec_async": False}])
@pytest.mark.parametrize("is_built", [False, True])
def test_run(options, is_built):
    pipe = numbers(**options)
    if is_built:
        pipe.build()
    found = together(lambda: [number_of(pipe.run()[0]) for _ in range(EACH)])
    assert sorted(itertools.chain(*found)) == list(range(THREADS * EACH))
    assert all(own == sorted(own) for own in found)


def test_scheduling_and_taking():
    pipe = numbers()

    def work():
        own = []
        for _ in range(EACH):
            pipe.schedule_run()
            own.append(number_of(pipe.share_outputs()[0]))
            pipe.release_outputs()
        return own

    found = list(itertools.chain(*together(work)))
    assert len(set(found)) == THREADS * EACH


def test_one_thread_schedules_and_another_takes():
    pipe = numbers(prefetch_queue_depth=1)
    scheduled, taken = threading.Semaphore(0), []

    def work():
        if threading.current_thread() is first:
            for _ in range(EACH):
                pipe.schedule_run()
                scheduled.release()
            return
        for _ in range(EACH):
            scheduled.acquire()
            taken.append(number_of(pipe.share_outputs()[0]))

    first = threading.Thread(target=work, daemon=True)
    first.start()
    together(work, 1)
    first.join(120)
    assert taken == list(range(EACH))


def test_iterators():
    it = DALIGenericIterator(numbers(), ["x"])
    found = together(lambda: [int(next(it)[0]["x"][0]) for _ in range(EACH)])
    assert sorted(itertools.chain(*found)) == list(range(THREADS * EACH))


def test_one_thread_feeds_while_others_wait():
    @pipeline_def(batch_size=2, num_threads=1, device_id=None)
    def define():
        return fn.external_source(name="x", blocking=True)

    pipe = define()
    pipe.build()

    def feed():
        for k in range(2 * EACH + 2):
            pipe.feed_input("x", np.full((2, 1), k))

    feeder = threading.Thread(target=feed, daemon=True)
    feeder.start()
    found = together(lambda: [number_of(pipe.run()[0]) for _ in range(EACH)], 2)
    feeder.join(120)
    assert sorted(itertools.chain(*found)) == list(range(2 * EACH))
