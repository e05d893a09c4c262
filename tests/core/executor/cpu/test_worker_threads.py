"""Workers that help whoever wants work done."""

from __future__ import annotations

import gc
import threading

import pytest

from headrace.errors import UsageError
from headrace.executor.cpu import worker_threads as module
from headrace.executor.cpu.worker_threads import WorkerThreads
from headrace.executor.iteration import Iteration


def test_workers_take_part():
    workers = WorkerThreads(3)
    together = threading.Barrier(3, timeout=20)
    seen = set()

    def wait(number):
        seen.add(threading.get_ident())
        together.wait()

    workers.each(wait, 3)
    workers.each(wait, 3)
    assert threading.get_ident() in seen
    assert len(seen) == 3


@pytest.mark.parametrize("threads", [0, 1, 2, 4])
def test_every_number_comes_once(threads):
    workers = WorkerThreads(threads)
    for count in (0, 1, 2, 50):
        found = []
        workers.each(found.append, count)
        assert sorted(found) == list(range(count))


@pytest.mark.parametrize("threads", [1, 4])
def test_the_error_of_the_lowest_number_is_raised_and_the_rest_left_out(threads):
    workers = WorkerThreads(threads)
    found = []

    def fail(number):
        found.append(number)
        if number >= 5:
            raise ValueError(f"number {number}")

    for _ in range(20):
        found.clear()
        with pytest.raises(ValueError, match="number 5"):
            workers.each(fail, 1000)
        assert len(found) <= 5 + threads
    workers.each(found.append, 3)


def test_several_threads_are_helped_at_once():
    workers = WorkerThreads(2)
    sums = [0] * 4

    def work(place):
        for _ in range(30):
            found = []
            workers.each(found.append, 20)
            sums[place] += sum(found)

    threads = [threading.Thread(target=work, args=(place,)) for place in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sums == [30 * 190] * 4


def test_an_interruption_comes_through():
    workers = WorkerThreads(2)

    def interrupt(number):
        if number == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        workers.each(interrupt, 10)
    workers.each(lambda number: None, 10)


def test_workers_end_with_their_owner():
    workers = WorkerThreads(2)
    together = threading.Barrier(2, timeout=20)
    workers.each(lambda number: together.wait(), 2)
    threads = list(workers._workers)
    assert len(threads) == 1
    del workers
    gc.collect()
    for worker in threads:
        worker.join(20)
        assert not worker.is_alive()


def test_stopped_workers_say_so():
    workers = WorkerThreads(2)
    for thread in workers.stop():
        thread.join(20)
    with pytest.raises(UsageError, match="ended"):
        workers.each(lambda number: None, 2)


class FakeProgram:
    """Work of a millisecond a sample."""

    sample_seconds = processor_seconds = own_seconds = 1e-3
    needs_all_threads = False
    is_pass_through = is_sent = False

    def note_time(self, seconds, processor_seconds, count):
        """Nothing changes."""


class FakeClock:
    """A clock, and a runner that moves it on: by more where several threads are at work."""

    def __init__(self, one, several):
        self.now = 0.0
        self.cost = {1: one, 2: several}
        self.threads = 1
        self.done = []

    def perf_counter(self):
        return self.now

    thread_time = perf_counter

    def bind(self, iteration):
        """Nothing is kept."""

    release = threading.Event().set

    def run(self, samples):
        self.done += samples
        self.now += self.cost[self.threads] * len(samples)
        return []


@pytest.mark.parametrize(("one", "several", "best"), [(1.0, 2.0, 1), (2.0, 1.0, 2)])
def test_as_many_threads_take_part_as_do_a_batch_soonest(monkeypatch, one, several, best):
    clock, workers, program = FakeClock(one, several), WorkerThreads(2), FakeProgram()
    monkeypatch.setattr(module, "time", clock)
    for _ in range(100):
        limits = workers._limits.get(program)
        clock.threads = 2 if limits is None else limits.limit
        clock.done.clear()
        workers.carry(Iteration(0, 16, {}), program, lambda: clock)
        assert sorted(clock.done) == list(range(16))
    assert workers._limits[program].limit == best


def test_little_work_is_not_shared():
    workers, program, clock = WorkerThreads(4), FakeProgram(), FakeClock(1.0, 1.0)
    program.processor_seconds = 1e-5
    workers.carry(Iteration(0, 16, {}), program, lambda: clock)
    assert clock.done == list(range(16))
    assert not workers._workers
