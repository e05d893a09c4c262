"""Worker processes begin and end when they should, whoever kills whom."""

from __future__ import annotations

import gc
import os
import signal
from concurrent.futures import ThreadPoolExecutor
from unittest.mock import Mock

import numpy as np
import pytest

from headrace import fn, pipeline_def
from headrace.errors import WorkerProcessError
from headrace.operators import Input, operator
from tests.support.processes import (
    PATIENCE_SECONDS,
    check,
    kill,
    lives,
    numbers,
    started,
    wait_until,
)

pytestmark = pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="needs Linux")


def test_processes_end_with_their_pipeline():
    pipe = numbers()
    check(pipe, 0)
    check(pipe, 8)
    pids = pipe._executor.processes.pids()
    assert pids
    assert all(map(lives, pids))
    del pipe
    gc.collect()
    wait_until(lambda: not any(map(lives, pids)))


def test_a_killed_worker_is_an_error_and_the_next_batch_comes():
    pipe = numbers(num_threads=1, prefetch_queue_depth=1)
    check(pipe, 0)
    before = pipe._executor.processes.pids()
    os.kill(before[0], signal.SIGKILL)
    wait_until(lambda: not lives(before[0]))
    with pytest.raises(WorkerProcessError, match=f"process {before[0]} ended while it worked on"):
        _ = [pipe.run() for _ in range(4)]
    assert pipe.run()[0][0].shape() == [1000]
    assert before != pipe._executor.processes.pids()


@pytest.mark.parametrize("policy", ["skip", "replace"])
def test_a_killed_worker_does_its_samples_again(policy):
    pipe = numbers(on_bad_sample=policy)
    for k in range(6):
        check(pipe, 8 * k)
        pids = pipe._executor.processes.pids()
        for pid in pids:
            kill(pid)
    assert pipe.bad_samples == []
    wait_until(lambda: not any(map(lives, pids)))
    del pipe
    gc.collect()  # the pool lets go of what was killed: the next pipeline is not to have it


def test_pipelines_share_processes():
    first, second = numbers(), numbers(num_threads=3)
    check(first, 0)
    check(second, 0)
    pids = set(first._executor.processes.pids())
    for k in range(1, 4):
        check(first, 8 * k)
        check(second, 8 * k)
    assert len(set(first._executor.processes.pids()) | pids) <= 5
    del first
    gc.collect()
    check(second, 32)
    pids = set(second._executor.processes.pids())
    third = numbers()
    check(third, 0)
    assert set(third._executor.processes.pids()) >= pids
    del second, third
    gc.collect()
    wait_until(lambda: not any(map(lives, pids)))


def doubled(x):
    return x * 2


@pytest.mark.parametrize(
    "num_threads", [2, *(pytest.param(n, marks=pytest.mark.nightly) for n in (1, 4))]
)
def test_as_many_processes_are_started_as_asked_for(num_threads, monkeypatch):
    """Threads need them for samples, and for calls of functions meanwhile."""
    from headrace.executor.processes.pool import POOL

    monkeypatch.setattr(POOL, "_started", Mock(wraps=POOL._started))

    @pipeline_def(batch_size=16, num_threads=num_threads, device_id=None, workers="processes")
    def p():
        x = fn.external_source(lambda info: np.full(999, info.iteration, np.int32), batch=False)
        x = fn.python_function(fn.python_function(x + 1, function=doubled) - 1, function=doubled)
        return x + 1

    pipe = p()
    for k in range(60):
        assert np.unique(pipe.run()[0].as_array()).tolist() == [2 * (2 * (k + 1) - 1) + 1]
    assert POOL._started.call_count == num_threads
    assert len(POOL.pids()) == num_threads


@pytest.mark.parametrize("comes", ["back", "never", "lost"])
def test_a_thread_waits_for_a_process_that_is_in_use(comes, monkeypatch):
    """The next one that comes back is its; one is started in place of one that was lost, and where
    none comes back for long."""
    from headrace.executor.processes import pool

    monkeypatch.setattr(pool, "_WAIT_TIMEOUT_SECONDS", 0.1 if comes == "never" else 60)
    pipe = numbers(num_threads=1)
    check(pipe, 0)
    wait_until(lambda: len(pool.POOL._idle) == 1)  # it works ahead
    processes = pipe._executor.processes
    first = processes.lend(again=False)
    assert processes.lend(again=False, starts=False) is None
    with ThreadPoolExecutor(1) as thread:
        wanted = thread.submit(processes.lend, again=False)
        wait_until(lambda: pool.POOL.is_awaited() or wanted.done())
        if comes == "back":
            pool.POOL.give_back(first)
        elif comes == "lost":
            pool.POOL.discard(first)
        second = wanted.result(PATIENCE_SECONDS)
    assert (second is first) == (comes == "back")
    pool.POOL.give_back(second)  # at once: the pipeline may wait for it, too
    if comes == "never":
        pool.POOL.give_back(first)
    wait_until(lambda: not pool.POOL.is_awaited() and len(pool.POOL._alive) == 1)
    check(pipe, 8)


@pytest.mark.parametrize("mask", ["last", None])
def test_workers_are_bound_to_processors(mask, monkeypatch):
    """One that is listed; the other one may use all."""
    allowed = sorted(os.sched_getaffinity(0))
    monkeypatch.delenv("DALI_AFFINITY_MASK", raising=False)
    if mask is not None:
        monkeypatch.setenv("HEADRACE_AFFINITY_MASK", str(allowed[-1]))
    pipe = numbers(set_affinity=True)
    check(pipe, 0)
    expected = {tuple(allowed), tuple(allowed[-1:] if mask else allowed)}

    def bound() -> set[tuple[int, ...]]:
        pids = pipe._executor.processes.pids()
        return {tuple(sorted(os.sched_getaffinity(pid))) for pid in pids if lives(pid)}

    wait_until(lambda: bound() == expected)


def test_a_killed_server_is_started_again():
    from headrace.executor.processes.server_process import SERVER

    pipe = numbers(on_bad_sample="replace")
    check(pipe, 0)
    old, pids = SERVER.pid(), pipe._executor.processes.pids()
    os.kill(old, signal.SIGKILL)
    wait_until(lambda: not any(map(lives, pids)))  # whoever kills the server
    for k in range(1, 5):
        check(pipe, 8 * k)
    assert SERVER.pid() != old


def test_a_sample_that_ends_its_worker_is_a_bad_one():
    @operator("testing.processes_crash", inputs=Input())
    def crash(xp, x):
        if x[0] == 5:
            os.kill(os.getpid(), signal.SIGSEGV)
        return x

    @pipeline_def(
        batch_size=8, num_threads=2, device_id=None, workers="processes", on_bad_sample="replace"
    )
    def p():
        x = fn.external_source(lambda: np.arange(8, dtype=np.int32)[:, None])
        return fn.testing.processes_crash(x)

    pipe = p()
    assert np.array(pipe.run()[0].as_array())[:, 0].tolist() == [0, 1, 2, 3, 4, 4, 6, 7]
    (bad,) = (b for b in pipe.bad_samples if b.iteration == 0)
    assert bad.index == 5
    assert "ended while it worked on sample 5" in bad.reason


def test_the_server_has_one_thread_and_nothing_of_the_program():
    from headrace.executor.processes.server_process import SERVER

    pipe = numbers()
    check(pipe, 0)
    assert len(os.listdir(f"/proc/{SERVER.pid()}/task")) == 1


# -- programs --------------------------------------------------------------------------------------


def test_a_program_ends_with_all_processes():
    program, pids = started("")
    _, errors = program.communicate(timeout=PATIENCE_SECONDS)
    assert (program.returncode, errors) == (0, "")
    wait_until(lambda: not any(map(lives, pids)))


@pytest.mark.parametrize(
    "number", [signal.SIGKILL, pytest.param(signal.SIGTERM, marks=pytest.mark.nightly)]
)
def test_processes_end_with_a_program_that_is_killed(number):
    program, pids = started("    time.sleep(600)")
    assert all(map(lives, pids))
    program.send_signal(number)
    program.communicate(timeout=PATIENCE_SECONDS)
    wait_until(lambda: not any(map(lives, pids)))


def test_a_ctrl_c_is_for_the_program_alone():
    more = """
    import signal
    try:
        for pid in map(int, (SERVER.pid(), *pipe._executor.processes.pids())):
            os.kill(pid, signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
    except KeyboardInterrupt:
        for _ in range(5):
            assert int(np.array(pipe.run()[0][0])[0]) == 8
    """
    program, _ = started(more)
    _, errors = program.communicate(timeout=PATIENCE_SECONDS)
    assert (program.returncode, errors) == (0, "")


def test_forks_keep_what_they_saw_and_make_pipelines_of_their_own():
    more = """
    kept = pipe.run()[0]
    pid = os.fork()
    if not pid:
        code = 1
        try:
            for _ in range(3):
                assert int(np.array(p().run()[0][0])[0]) == 8
            time.sleep(0.2)
            assert all((np.array(sample) == 8).all() for sample in kept)
            code = 0
        finally:
            os._exit(code)
    del kept
    for _ in range(50):
        fed = pipe.run()[0]
        for sample in fed:
            np.asarray(sample)[:] = 99  # in the memory that the fork has seen, if it were used
    del fed
    assert os.waitpid(pid, 0)[1] == 0
    """
    program, _ = started(more)
    _, errors = program.communicate(timeout=PATIENCE_SECONDS)
    assert (program.returncode, errors) == (0, "")


@pytest.mark.nightly
def test_several_programs_side_by_side():
    more = """
    rank = int(os.environ["RANK"])
    @pipeline_def(batch_size=4, num_threads=2, device_id=None, workers="processes")
    def shard():
        x = fn.external_source(lambda info: np.int32([info.idx_in_epoch]), batch=False)
        return x * 2 + rank
    other = shard()
    for k in range(3):
        found = np.array(other.run()[0].as_array())[:, 0].tolist()
        assert found == [2 * n + rank for n in range(4 * k, 4 * k + 4)], found
    """
    programs = []
    for rank in ("0", "1"):
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("RANK", rank)
            programs.append(started(more))
    for program, _ in programs:
        _, errors = program.communicate(timeout=PATIENCE_SECONDS)
        assert (program.returncode, errors) == (0, "")
    wait_until(lambda: not any(lives(pid) for _, pids in programs for pid in pids))
