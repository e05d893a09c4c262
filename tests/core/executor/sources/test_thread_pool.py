"""Sources in threads."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from headrace.errors import SourceWorkerError
from tests.core.executor.sources import sources
from tests.core.executor.sources.sources import pipeline, run, values


def threaded(source, **arguments):
    return pipeline(source, parallel="threads", **arguments)


def test_samples_are_made_by_several_threads_at_once():
    together = threading.Barrier(2)

    def source(info):
        if info.idx_in_batch in (0, 2):  # the first of each thread
            together.wait(60)
        return np.array([info.idx_in_epoch])

    pipe = threaded(source, batch=False)
    assert values(pipe.run()) == [[0], [1], [2], [3]]
    assert values(pipe.run()) == [[4], [5], [6], [7]]


def test_nothing_is_pickled():
    lock = threading.Lock()

    def source(index):
        with lock:
            return [np.array([index])] * 2

    assert values(threaded(source).run()) == [[0]] * 2


def test_buffers_may_be_filled_anew():
    buffer = np.zeros((4, 1))

    def source():
        buffer[...] += 1
        return buffer

    pipe = threaded(source, options={"py_num_workers": 1})
    assert [values(pipe.run())[0] for _ in range(4)] == [[1], [2], [3], [4]]


def test_without_a_copy():
    data = np.zeros((4, 1))
    pipe = threaded(lambda i: data, no_copy=True)
    assert np.shares_memory(np.asarray(pipe.run()[0].as_array()), data)


def test_ends_and_new_epochs():
    pipe = threaded(sources.ending)
    for _ in range(3):
        assert [values(pipe.run())[0] for _ in range(3)] == [[0], [1], [2]]
        with pytest.raises(StopIteration):
            pipe.run()
        pipe.reset()


def test_iterables():
    pipe = threaded(
        [np.full((2, 1), k) for k in range(3)], cycle="raise", options={"py_num_workers": 1}
    )
    for _ in range(2):
        assert [values(pipe.run())[0] for _ in range(3)] == [[0], [1], [2]]
        with pytest.raises(StopIteration):
            pipe.run()
        pipe.reset()


def test_errors_are_the_sources_own():
    pipe = threaded(sources.raising, batch=False)
    with pytest.raises(LookupError, match="not this one") as caught:
        run(pipe)
    assert any("sample 2 of the batch" in note for note in caught.value.__notes__)
    assert any(entry.name == "raising" for entry in caught.traceback)


def test_sources_that_exit():
    with pytest.raises(SourceWorkerError, match="SystemExit"):
        threaded(sources.exiting, batch=False).run()


def test_threads_end_with_the_pipeline():
    before = set(threading.enumerate())
    pipe = threaded(sources.numbered, batch=False)
    pipe.run()
    threads = [
        t for t in set(threading.enumerate()) - before if t.name.startswith("headrace-source")
    ]
    assert len(threads) == 2
    del pipe
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()


def test_no_processes():
    pipe = threaded(sources.numbered, batch=False)
    pipe.run()
    assert pipe._py_pool is None
    assert pipe.external_source_shm_statistics()["capacities"] == []
