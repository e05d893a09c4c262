from __future__ import annotations

import itertools

import numpy as np
import pytest

from penstock import Pipeline, fn
from penstock.executor.crew import Crew


def work(crew, chunks, single, together, stage_seconds=1e-4, full=True):
    """Chunks that take so many seconds a sample with one thread at work, and with all of them."""
    limits = []
    for _ in range(chunks):
        beside = crew.limit if full else 1
        for _ in range(beside):
            crew.enter()
        for _ in range(beside - 1):
            crew.busy -= 1
        crew.leave(beside, single if beside == 1 else together, stage_seconds)
        limits.append(crew.limit)
    return [(limit, len(list(group))) for limit, group in itertools.groupby(limits)]


def test_threads_that_bring_nothing_rest():
    crew = Crew(4)
    first, tried = work(crew, 200, single=1e-4, together=4e-4)
    assert (first[0], tried[0]) == (4, 1)


def test_threads_that_bring_much_go_on():
    crew = Crew(4)
    periods = work(crew, 200, single=1e-4, together=1e-4)
    assert [limit for limit, _ in periods] == [4, 1, 4]


def test_it_is_tried_again():
    crew = Crew(2)
    work(crew, 200, single=1e-4, together=2e-4)
    assert crew.limit == 1
    periods = work(crew, 3000, single=1e-4, together=1.2e-4)
    assert periods[-1][0] == 2


def test_long_samples_are_shared_without_trying():
    crew = Crew(3)
    assert work(crew, 500, single=1e-2, together=9e-2, stage_seconds=1e-2) == [(3, 500)]
    work(crew, 200, single=1e-4, together=9e-4)
    assert crew.limit == 1
    work(crew, 1, single=1e-2, together=1e-2, stage_seconds=1e-2)
    assert crew.limit == 3


def test_consumers_that_are_slow_decide_nothing():
    crew = Crew(3)
    assert work(crew, 500, single=1e-4, together=9e-4, full=False) == [(3, 500)]


def test_stages_that_are_not_tried():
    crew = Crew(3, tries=False)
    assert work(crew, 500, single=1e-4, together=9e-4) == [(3, 500)]


def test_no_more_than_the_limit_may_begin():
    crew = Crew(2)
    crew.enter()
    assert not crew.is_full()
    crew.enter()
    assert crew.is_full()


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_pipelines_go_on_while_it_is_tried(threads):
    pipe = Pipeline(16, threads, None, seed=3, prefetch_queue_depth=3)
    with pipe:
        numbers = fn.external_source(lambda info: np.full(30, info.idx_in_epoch), batch=False)
        noise = fn.random.uniform(shape=30)
        pipe.set_outputs(numbers * 2 + 1, fn.normalize(noise) + 0)
    for k in range(300):
        doubled, _ = pipe.run()
        expected = 2 * np.arange(16 * k, 16 * k + 16) + 1
        assert [int(sample[0]) for sample in map(np.asarray, doubled)] == expected.tolist()
