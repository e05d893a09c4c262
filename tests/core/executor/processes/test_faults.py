"""Worker processes that are killed or stopped, at any moment."""

from __future__ import annotations

import contextlib
import gc
import os
import random
import signal
import threading
import time

import numpy as np
import pytest

from headrace import fn, pipeline_def
from headrace.errors import WorkerProcessError
from headrace.operators import Input, operator
from tests.support.processes import PATIENCE_SECONDS, check, kill, lives, numbers, wait_until

pytestmark = pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="needs Linux")

FILES, BATCH = 48, 12


def files(folder, policy):
    """A pipeline of files, each of which holds its own number so often."""
    for k in range(FILES):
        (folder / f"{k:02}").write_bytes(bytes([k]) * (50 * k + 1))
    names = [f"{k:02}" for k in range(FILES)]

    @pipeline_def(
        batch_size=BATCH,
        num_threads=3,
        device_id=None,
        seed=3,
        on_bad_sample=policy,
        workers="processes",
    )
    def p():
        data, label = fn.readers.file(
            file_root=str(folder),
            files=names,
            labels=list(range(FILES)),
            random_shuffle=policy != "raise",
        )
        return data + 1, label

    return p()


def labels_of(batch):
    """The labels of a batch, each of whose samples is found to be the one with this label."""
    data, labels = batch
    found = [int(np.array(label).item()) for label in labels]
    for sample, label in zip(data, found, strict=True):
        np.testing.assert_array_equal(sample, np.full(50 * label + 1, label + 1, np.uint8))
    return found


def memory_files():
    """Numbers of the files in memory that this process has open."""
    found = set()
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            if "memfd:headrace" in os.readlink(f"/proc/self/fd/{name}"):
                found.add(os.fstat(int(name)).st_ino)
    return found


def check_random_kills(folder, policy, rounds):
    """Kill a worker in so many rounds, and see what comes out meanwhile."""
    from headrace.executor.processes.pool import POOL
    from headrace.executor.processes.shared_pool import SHARED_POOL

    rng = random.Random(rounds)
    files_before = memory_files()
    gc.collect()
    bytes_before = SHARED_POOL.stats().bytes_in_use  # batches that earlier tests have kept
    SHARED_POOL.trim()
    # What is page-locked for a GPU lies in the same file, and another pool keeps it.
    file_before = SHARED_POOL._current
    blocks_before = 0 if file_before is None else os.fstat(file_before.descriptor).st_blocks
    pipe = files(folder, policy)
    seen: list[int] = []
    ended, goes_on = threading.Event(), threading.Semaphore(0)
    killed = []

    def kill_some():
        try:
            for _ in range(rounds):
                while goes_on.acquire(blocking=False):
                    pass
                for _ in range(4):  # not the same samples again: the third time they were bad ones
                    assert goes_on.acquire(timeout=PATIENCE_SECONDS)
                ended.wait(rng.random() * 0.02)
                pids = POOL.pids()
                if pids:
                    killed.append(rng.choice(pids))
                    kill(killed[-1])
        finally:
            ended.set()

    killer = threading.Thread(target=kill_some)
    killer.start()
    batches, errors = 0, []
    while not ended.is_set() or batches % (FILES // BATCH):
        try:
            labels = labels_of(pipe.run())
        except WorkerProcessError as error:
            errors.append(str(error))
            labels = []
        seen += labels
        batches += 1
        goes_on.release()
        if policy == "raise" and labels:  # batches with an error are missing, nothing else
            first = (batches - 1) * BATCH % FILES
            assert labels == list(range(first, first + BATCH))
    killer.join()
    assert killed
    assert all("ended while it worked on" in error for error in errors)
    assert policy == "raise" or not errors
    assert pipe.bad_samples == []
    if policy != "raise":
        for k in range(0, len(seen), FILES):
            assert sorted(seen[k : k + FILES]) == list(range(FILES))
    print(f"{policy}: {len(killed)} kills, {batches} batches, {len(errors)} errors")
    del pipe
    gc.collect()
    wait_until(lambda: not POOL.pids())
    wait_until(lambda: not any(map(lives, killed)))
    assert SHARED_POOL.stats().bytes_in_use <= bytes_before
    SHARED_POOL.trim()
    shared = os.fstat(SHARED_POOL._current.descriptor)  # that of all pipelines of the program
    wait_until(lambda: memory_files() - files_before <= {shared.st_ino})
    assert shared.st_blocks <= blocks_before
    left = {name for name in os.listdir("/dev/shm") if "headrace" in name}
    assert not {name for name in left if not name.startswith("headrace-cache")}  # of `fn.cache`


@pytest.mark.parametrize("policy", ["raise", "skip", "replace"])
def test_workers_that_are_killed_at_random_moments(tmp_path, policy):
    check_random_kills(tmp_path, policy, 4)


@pytest.mark.nightly
@pytest.mark.parametrize("policy", ["raise", "skip", "replace"])
def test_many_workers_that_are_killed_at_random_moments(tmp_path, policy):
    check_random_kills(tmp_path, policy, 200)


def test_a_stopped_worker_is_an_error():
    pipe = numbers(num_threads=1, py_worker_timeout_seconds=1)
    check(pipe, 0)
    wait_until(pipe._executor.processes.pids)  # not while one is given back
    (before,) = pipe._executor.processes.pids()
    os.kill(before, signal.SIGSTOP)
    with pytest.raises(
        WorkerProcessError, match=rf"process {before} was stopped, .* 1 seconds \(`py_worker_"
    ):
        _ = [pipe.run() for _ in range(4)]
    wait_until(lambda: not lives(before))
    assert pipe.run()[0][0].shape() == [1000]


def test_a_stopped_worker_does_its_samples_again():
    pipe = numbers(on_bad_sample="replace", py_worker_timeout_seconds=1)
    for k in range(4):
        check(pipe, 8 * k)
        if k == 1:
            for pid in pipe._executor.processes.pids():
                os.kill(pid, signal.SIGSTOP)
    assert pipe.bad_samples == []


def test_a_server_that_is_stopped_is_given_up():
    from headrace.executor.processes.server_process import SERVER

    first = numbers()
    check(first, 0)
    old = SERVER.pid()
    os.kill(old, signal.SIGSTOP)
    del first  # its processes would do all of the work
    gc.collect()
    pipe = numbers(num_threads=5, on_bad_sample="replace", py_worker_timeout_seconds=1)
    for k in range(4):
        check(pipe, 8 * k)
    wait_until(lambda: not lives(old))


def test_a_worker_that_computes_may_take_any_time():
    @operator("testing.processes_busy", inputs=Input())
    def busy(xp, x):
        end = time.process_time() + 1.5
        while time.process_time() < end:
            pass
        return x + xp.int32(1)

    @pipeline_def(
        batch_size=1,
        num_threads=1,
        device_id=None,
        workers="processes",
        prefetch_queue_depth=1,
        py_worker_timeout_seconds=0.5,
    )
    def p():
        return fn.testing.processes_busy(fn.external_source(lambda: [np.int32(3)]))

    assert int(np.array(p().run()[0][0])) == 4
