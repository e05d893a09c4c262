from __future__ import annotations

import itertools

import numpy as np
import pytest

from headrace import Pipeline, fn
from headrace.compilation_notice import compiling
from headrace.executor.cpu.concurrency import Concurrency
from headrace.executor.cpu.program import Program
from headrace.operators import Input, SampleOperator, operator


def work(concurrency, chunks, seconds, all_needed=False, full=True, is_awaited=False):
    """Chunks that take ``seconds(threads at work)`` a sample; the limits one after the other."""
    limits = []
    for _ in range(chunks):
        beside = concurrency.limit if full else 1
        for _ in range(beside):
            concurrency.enter()
        for _ in range(beside - 1):
            concurrency.busy -= 1
        concurrency.leave(beside, seconds(beside), all_needed=all_needed, is_awaited=is_awaited)
        limits.append(concurrency.limit)
    return [(limit, len(list(group))) for limit, group in itertools.groupby(limits)]


def behind_one_lock(threads):
    """Every thread more makes all of them slower."""
    return 1e-4 * threads**1.5


def independent(threads):
    return 1e-4


def up_to(best):
    """So many threads do not disturb one another; more do."""
    return lambda threads: 1e-4 * max(1, threads / best) ** 2


@pytest.mark.parametrize("threads", [2, 4, 16])
def test_threads_that_bring_nothing_rest(threads):
    for concurrency in (Concurrency(threads), Concurrency(threads, first=threads)):
        work(concurrency, 300, behind_one_lock)
        assert concurrency.limit == 1


@pytest.mark.parametrize("threads", [2, 6, 16])
def test_threads_that_bring_much_go_on(threads):
    concurrency = Concurrency(threads)
    work(concurrency, 300, independent)
    assert concurrency.limit == threads


@pytest.mark.parametrize(("threads", "best"), [(16, 4), (16, 2), (12, 3), (8, 8)])
def test_the_best_number_is_found(threads, best):
    concurrency = Concurrency(threads)
    work(concurrency, 300, up_to(best))
    assert concurrency.limit == best


def test_fewer_are_not_tried_where_half_of_them_do_clearly_less():
    concurrency = Concurrency(16, first=16)
    assert {limit for limit, _ in work(concurrency, 300, independent)} == {16, 8}


def test_trials_are_short_where_a_number_of_threads_does_far_less():
    concurrency = Concurrency(2)
    periods = work(concurrency, 300, behind_one_lock)
    concurrency = Concurrency(2)
    assert work(concurrency, 100, lambda threads: {2: 1e-4, 1: 1e-2}[threads])[1] == (1, 8)
    assert periods[1][1] >= 24


def test_a_few_are_tried_first_and_more_only_as_long_as_they_do_more():
    concurrency = Concurrency(16)
    tried = {limit for limit, _ in work(concurrency, 300, behind_one_lock)}
    assert tried == {4, 2, 1}
    work(concurrency, 10, behind_one_lock, all_needed=True)
    assert concurrency.limit == 16
    tried = {limit for limit, _ in work(concurrency, 300, behind_one_lock)}
    assert tried == {4, 2, 1}
    concurrency = Concurrency(16)
    assert [limit for limit, _ in work(concurrency, 300, independent)] == [4, 2, 4, 8, 16]


@pytest.mark.parametrize("threads", [2, 16])
def test_all_threads_are_tried_again_once_memory_is_not_new_any_more(threads):
    concurrency = Concurrency(threads)
    work(concurrency, 2 * 24, lambda threads: 2.5e-4)
    work(concurrency, 200, independent)
    assert concurrency.limit == threads


def test_chunks_that_began_beside_more_threads_say_nothing_about_fewer():
    concurrency = Concurrency(8, first=8)
    work(concurrency, 2 * 24, independent)
    assert concurrency.limit == 4
    for _ in range(100):
        concurrency.busy += 1
        concurrency.leave(8, 1e-9, all_needed=False)
    assert concurrency.limit == 4


def test_chunks_that_say_nothing_are_ended():
    concurrency = Concurrency(8, first=8)
    for _ in range(500):
        concurrency.enter()
        concurrency.leave(8, None, all_needed=False)
    assert (concurrency.busy, concurrency.limit) == (0, 8)
    assert work(concurrency, 47, independent) == [(8, 47)]


def test_it_is_measured_again():
    concurrency = Concurrency(16)
    work(concurrency, 300, behind_one_lock)
    assert concurrency.limit == 1
    work(concurrency, 40_000, independent)
    assert concurrency.limit == 16
    work(concurrency, 80_000, up_to(4))
    assert concurrency.limit == 4


def test_all_threads_work_without_a_trial_where_all_are_needed():
    concurrency = Concurrency(3)
    assert work(concurrency, 500, behind_one_lock, all_needed=True) == [(3, 500)]
    work(concurrency, 200, behind_one_lock)
    assert concurrency.limit == 1
    work(concurrency, 1, behind_one_lock, all_needed=True)
    assert concurrency.limit == 3


def test_chunks_in_new_memory_decide_nothing():
    concurrency = Concurrency(2)
    work(concurrency, 24, lambda threads: 4e-4)
    work(concurrency, 100, independent)
    assert concurrency.limit == 2


def test_consumers_that_are_slow_decide_nothing():
    concurrency = Concurrency(3)
    assert work(concurrency, 500, behind_one_lock, full=False) == [(3, 500)]


def test_stages_that_are_not_tried():
    concurrency = Concurrency(3, tries=False)
    assert work(concurrency, 500, behind_one_lock) == [(3, 500)]


def test_samples_that_processes_carry_are_not_tried():
    concurrency = Concurrency(16)
    work(concurrency, 300, behind_one_lock)
    assert concurrency.limit == 1
    concurrency.start_over(tries=False)
    assert work(concurrency, 300, behind_one_lock) == [(16, 300)]
    concurrency.start_over()  # threads carry them again
    work(concurrency, 300, behind_one_lock)
    assert concurrency.limit == 1


def test_no_more_than_the_limit_may_begin():
    concurrency = Concurrency(2)
    concurrency.enter()
    assert not concurrency.is_full()
    concurrency.enter()
    assert concurrency.is_full()


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


def test_threads_that_keep_the_consumer_from_its_work_rest():
    """With all of them a single one has something to do at a time; with fewer that is no better."""
    few = Concurrency(16, first=16)
    assert work(few, 300, independent, full=False) == [(16, 300)]
    work(few, 300, independent, full=False, is_awaited=True)
    assert few.limit == 1


@operator("testing.compile_something", inputs=Input("data"), hidden=True)
class CompileSomething(SampleOperator):
    """As if a kernel had been compiled meanwhile."""

    def cpu(self, c, data):
        compiling.seconds += 0.5
        return data


def test_the_time_of_a_chunk_that_waits_for_a_compiler_is_not_noted(monkeypatch):
    noted = []
    monkeypatch.setattr(Program, "note_time", lambda *given: noted.append(given))
    pipe = Pipeline(4, 2, None, workers="threads")
    with pipe:
        fed = fn.external_source(source=lambda: np.zeros((4, 3), np.uint8), batch=True)
        pipe.set_outputs(fn.testing.compile_something(fed))
    for _ in range(4):
        pipe.run()
    assert not noted
