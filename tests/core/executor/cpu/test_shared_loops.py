"""Loops of chunks, in which threads help that have nothing else to do."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import pytest

from headrace import Pipeline, _forking, fn, profile
from headrace._forking import no_fork
from headrace.executor.cpu import tasks
from headrace.executor.cpu.arena import Arena
from headrace.executor.cpu.concurrency import Concurrency
from headrace.executor.cpu.shared_loops import SharedLoop, SharedLoops
from headrace.executor.monitor import Monitor
from headrace.kernels.cpu.atomic import next_of
from headrace.operators import Input, Planned, SampleOperator, operator
from tests.support.processes import wait_until


@operator("testing.double_in_a_loop", inputs=Input("data"), hidden=True)
class DoubleInALoop(SampleOperator):
    """Twice each sample, in a loop whose parts wait for one another."""

    meeting: ClassVar[threading.Barrier]
    threads: ClassVar[set[int]] = set()
    fails: ClassVar[str] = ""
    chunked = True

    def plan(self, c, data):
        return Planned(data.shapes)

    def cpu_chunk(self, c, data):
        out, owner, count = c.out(), threading.get_ident(), len(c.indices)

        def part(taken, temp):
            here = threading.get_ident()
            who = "owner" if here == owner else "helper"
            self.threads.add(here)
            scratch = temp(data[0].shape, data[0].dtype)
            if count > 1:
                self.meeting.wait(60)
                if who == self.fails:
                    raise MemoryError("none is left")
            while (k := next_of(taken)) < count:
                np.add(data[k], data[k], out=scratch)
                out[k][...] = scratch

        c.loop(count, part)
        return out


@pytest.fixture
def pipeline(monkeypatch):
    """All samples of a batch are one chunk, in whose loop all threads have to meet."""
    monkeypatch.setattr(tasks, "chunk_size", lambda *_: 64)

    def wants_help(loop):
        is_left = loop.taken[0] < loop.count
        return is_left and loop.called + 1 < loop.program.concurrency.threads

    monkeypatch.setattr(SharedLoop, "wants_help", wants_help)
    monkeypatch.setattr(DoubleInALoop, "threads", set())

    def make(threads, fails="", **keywords):
        monkeypatch.setattr(DoubleInALoop, "meeting", threading.Barrier(threads), raising=False)
        monkeypatch.setattr(DoubleInALoop, "fails", fails)
        pipe = Pipeline(8, threads, None, workers="threads", prefetch_queue_depth=1, **keywords)
        with pipe:
            numbers = fn.external_source(
                lambda info: np.full(50, info.idx_in_epoch, np.int32), batch=False
            )
            pipe.set_outputs(fn.testing.double_in_a_loop(numbers))
        return pipe

    return make


def _check(pipe, batches=5):
    for k in range(batches):
        found = [np.unique(sample).tolist() for sample in map(np.asarray, pipe.run()[0])]
        assert found == [[2 * n] for n in range(8 * k, 8 * k + 8)]


def _programs(pipe):
    return {p for runners in pipe._executor._cpu._runners for p in runners}


@pytest.mark.parametrize("threads", [2, 4])
def test_all_threads_take_part(threads, pipeline):
    pipe = pipeline(threads)
    _check(pipe)
    assert len(DoubleInALoop.threads) == threads
    (program,) = _programs(pipe)
    wait_until(lambda: program.concurrency.busy == 0)
    assert not pipe._executor._cpu._loops._loops


@pytest.mark.parametrize("fails", ["owner", "helper"])
def test_what_fails_in_a_part_is_done_sample_by_sample(fails, pipeline):
    pipe = pipeline(3, fails)
    _check(pipe)
    assert len(DoubleInALoop.threads) == 3


def test_one_thread_has_no_help(pipeline):
    pipe = pipeline(1)
    _check(pipe)
    assert len(DoubleInALoop.threads) == 1


def test_time_of_helpers_counts(pipeline, monkeypatch):
    from headrace.executor.cpu.program import Program

    noted = []
    monkeypatch.setattr(Program, "note_time", lambda _, *given: noted.append(given))
    _check(pipeline(4))
    for seconds, processor_seconds, count, shared_seconds in noted:
        assert count == 8
        assert 0 < shared_seconds <= processor_seconds
        assert seconds > processor_seconds / 4


@pytest.mark.parametrize(
    ("count", "taken", "seconds", "helpers", "wanted"),
    [
        (64, 0, 1.3e-3, 0, True),
        (64, 0, 1.3e-3, 17, True),
        (64, 0, 1.3e-3, 19, False),
        (64, 60, 1.3e-3, 0, False),
        (64, 80, 1.3e-3, 0, False),
        (64, 0, 1e-4, 0, False),
    ],
)
def test_so_many_helpers_are_wanted(count, taken, seconds, helpers, wanted):
    program = SimpleNamespace(processor_seconds=seconds, concurrency=Concurrency(64))
    loop = SharedLoop(program, SimpleNamespace(node=None, iteration=0), count, print)
    loop.taken[0], loop.called = taken, helpers
    assert loop.wants_help() is wanted


def test_profiles_have_the_time_of_helpers(pipeline):
    pipe = pipeline(3)
    with profile() as found:
        _check(pipe, 8)
    (figures,) = found.figures()
    (own,) = [o for o in figures.operators if "double_in_a_loop" in o.label.name]
    assert own.samples == 7 * 8  # the first batch does not count
    (recorder,) = found.recorders
    codes = {k for k, label in enumerate(recorder.labels) if label == own.label}
    lanes = [lane.array()["code"].tolist() for lane in recorder.lanes.values()]
    assert sum(bool(codes & set(lane)) for lane in lanes) == 3


def test_a_fork_that_is_awaited_stops_helpers_on_their_way(pipeline, monkeypatch):
    """They begin when it is over; nobody at work waits for them, since it waits for those."""
    pipe = pipeline(2)
    monkeypatch.setattr(DoubleInALoop, "meeting", threading.Barrier(1))
    began, seen, others_are_out = threading.Event(), [], no_fork._others_are_out
    find, loops = SharedLoops.find, []

    def find_late(self):
        return find(self) if no_fork.is_awaited else None

    def run(self, loop, temp):
        loops.append(loop)
        if len(loops) > 1:
            return original(self, loop, temp)
        do = loop.part

        def part(taken, temp):
            began.set()
            wait_until(lambda: no_fork.is_awaited)
            with self._monitor.lock:
                self._monitor.work.notify()
            wait_until(lambda: loop.called == 1)
            loop.part = do
            do(taken, temp)

        loop.part = part
        return original(self, loop, temp)

    def noted():
        seen.append(others_are_out())
        return seen[-1]

    original = SharedLoops.run
    monkeypatch.setattr(SharedLoops, "find", find_late)
    monkeypatch.setattr(SharedLoops, "run", run)
    monkeypatch.setattr(no_fork, "_others_are_out", noted)
    monkeypatch.setattr(_forking, "_WAIT_TIMEOUT_SECONDS", 20)
    with ThreadPoolExecutor(1) as consumer:
        batch = consumer.submit(pipe.run)
        assert began.wait(60)
        child = os.fork()
        if not child:
            os._exit(0)
        os.waitpid(child, 0)
        found = [np.unique(sample).tolist() for sample in map(np.asarray, batch.result()[0])]
    assert found == [[2 * n] for n in range(8)]
    assert seen[-1]
    wait_until(lambda: not loops[0].called)


def test_scratch_memory_of_helpers_is_taken_back():
    monitor, arena, given = Monitor(), Arena(), []
    loops = SharedLoops(monitor)
    program = SimpleNamespace(processor_seconds=1.0, concurrency=Concurrency(2))

    def part(taken, temp):
        given.append(temp((300,), np.uint8))
        taken[0] = 5

    loop = SharedLoop(program, SimpleNamespace(node=None, iteration=0), 5, part)
    loops._loops.append(loop)
    with monitor.lock:
        assert loops.find() is loop
    assert program.concurrency.busy == 1
    loops.help(loop, arena)
    assert len(given) == 1
    assert arena.mark() == 0
    assert (loop.called, loop.helpers, program.concurrency.busy) == (0, 0, 0)
    with monitor.lock:
        assert loops.find() is None


def test_nobody_helps_beyond_the_limit():
    monitor = Monitor()
    loops = SharedLoops(monitor)
    program = SimpleNamespace(processor_seconds=1.0, concurrency=Concurrency(3))
    loops._loops.append(SharedLoop(program, SimpleNamespace(node=None, iteration=0), 99, print))
    program.concurrency.enter()
    with monitor.lock:
        assert [loops.find() is None for _ in range(4)] == [False, False, True, True]


def test_what_samples_take_of_their_own(pipeline):
    pipe = pipeline(4)
    _check(pipe)
    (program,) = _programs(pipe)
    for _ in range(60):
        program.note_time(0.9, 0.8 + program.chunk_seconds, 8, 0.75)
    assert program.processor_seconds == pytest.approx(0.1)
    assert program.own_seconds == pytest.approx(0.05 / 8)
    program.processor_seconds = 4e-3
    for own, all_needed in ((0.9e-3, True), (1.1e-3, False)):
        program.own_seconds = own
        assert program.needs_all_threads is all_needed
    program.processor_seconds = 6e-3
    assert program.needs_all_threads
