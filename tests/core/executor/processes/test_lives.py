"""Worker processes begin and end when they should, whoever kills whom."""

from __future__ import annotations

import contextlib
import gc
import os
import random
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest

from penstock import fn, pipeline_def
from penstock.errors import WorkerProcessError
from penstock.operators import Input, operator
from tests.e2e.support import REPOSITORY

pytestmark = pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="needs Linux")

PATIENCE_SECONDS = 60


def wait_until(condition):
    end = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.01)


def lives(pid):
    """Whether there is such a process that has not ended."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


def kill(pid):
    with contextlib.suppress(ProcessLookupError):  # it was killed before
        os.kill(pid, signal.SIGKILL)


def numbers(batch_size=8, num_threads=2, **options):
    """A pipeline of increasing numbers, each of them an array."""
    counter = iter(range(10**9))

    @pipeline_def(
        batch_size=batch_size,
        num_threads=num_threads,
        device_id=None,
        workers="processes",
        **options,
    )
    def p():
        x = fn.external_source(
            lambda: [np.full(1000, next(counter), np.int32) for _ in range(batch_size)]
        )
        return x + 1

    return p()


def check(pipe, first):
    """Check the batch that begins with number `first`."""
    rows = [np.array(sample) for sample in pipe.run()[0]]
    for k, row in enumerate(rows):
        np.testing.assert_array_equal(row, first + k + 1)


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
        for pid in pipe._executor.processes.pids():
            kill(pid)
    assert pipe.bad_samples == []


def _check_random_kills(rounds):
    rng = random.Random(7)
    pipe = numbers(batch_size=16, num_threads=3, on_bad_sample="replace")
    for k in range(rounds):
        pids = pipe._executor.processes.pids() if k else []
        if pids:
            kill(rng.choice(pids))
        check(pipe, 16 * k)
    assert pipe.bad_samples == []


def test_workers_that_are_killed_at_random_moments():
    _check_random_kills(12)


@pytest.mark.nightly
def test_many_workers_that_are_killed_at_random_moments():
    _check_random_kills(200)


def test_a_killed_server_is_started_again():
    from penstock.executor.processes.server_process import SERVER

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
    from penstock.executor.processes.server_process import SERVER

    pipe = numbers()
    check(pipe, 0)
    assert len(os.listdir(f"/proc/{SERVER.pid()}/task")) == 1


# -- programs --------------------------------------------------------------------------------------

PROGRAM = """
    import os, sys, time
    import numpy as np
    from penstock import fn, pipeline_def

    print("imported", flush=True)  # once: workers import nothing of this

    @pipeline_def(batch_size=4, num_threads=2, device_id=None, workers="processes")
    def p():
        return fn.external_source(lambda: [np.full(100, 7, np.int32)] * 4) + 1

    pipe = p()
    for _ in range(3):
        assert int(np.array(pipe.run()[0][0])[0]) == 8
    from penstock.executor.processes.server_process import SERVER
    print(SERVER.pid(), *pipe._executor.processes.pids(), flush=True)
"""


def started(more):
    """A program, and the numbers of its server and workers."""
    program = subprocess.Popen(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(PROGRAM + more)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=REPOSITORY,
    )
    assert program.stdout is not None
    assert program.stdout.readline() == "imported\n"
    return program, [int(pid) for pid in program.stdout.readline().split()]


def test_a_program_ends_with_all_processes():
    program, pids = started("")
    _, errors = program.communicate(timeout=PATIENCE_SECONDS)
    assert (program.returncode, errors) == (0, "")
    wait_until(lambda: not any(map(lives, pids)))


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
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
