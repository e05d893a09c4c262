"""Processes that are forked while a pipeline runs."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading
import time

import pytest

from headrace._forking import NoFork

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")

CHILD_SECONDS = 60
"""A child that takes longer is stuck; it takes a few seconds."""


def run(program):
    """Run a program in a process of its own, whose kernels are not imported yet."""
    found = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        timeout=5 * CHILD_SECONDS,
        check=False,
    )
    assert found.returncode == 0, found.stderr
    return found.stdout


PIPELINE = f"""
import faulthandler, os
import numpy as np
from headrace import errors, fn, pipeline_def, types

@pipeline_def(batch_size=4, num_threads=3, device_id=None, prefetch_queue_depth=2)
def p():
    x = fn.external_source(lambda: [np.full((30, 40, 3), k, np.uint8) for k in range(4)],
                           layout="HWC")
    x = fn.resize(x, size=(20, 22))
    x = fn.warp_affine(x, matrix=[1, 0, 1, 0, 1, 2])
    return fn.crop_mirror_normalize(x, dtype=types.FLOAT, mean=[1.0], std=[2.0])

def forked(task):
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        faulthandler.dump_traceback_later({CHILD_SECONDS}, exit=True)
        task()
        code = 0
    finally:
        os._exit(code)

def ends(pids):
    return [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]
"""


def test_children_run_pipelines_of_their_own():
    """The parent's threads import and compile what the children need, too."""
    program = """
    pipe = p()
    pipe.build()
    pipe.schedule_run()
    children = [forked(lambda: p().run()) for _ in range(4)]
    print(ends(children))
    pipe.outputs()
    """
    assert run(PIPELINE + textwrap.dedent(program)) == "[0, 0, 0, 0]\n"


def test_the_parents_pipeline_is_refused_in_a_child():
    program = """
    pipe = p()
    pipe.run()

    def refused(call):
        def task():
            try:
                call()
            except errors.UsageError as error:
                assert "another process" in str(error)
            else:
                raise AssertionError("it ran")
        return task

    calls = [pipe.run, pipe.outputs, pipe.share_outputs, pipe.schedule_run, pipe.reset]
    print(ends([forked(refused(call)) for call in calls]))
    pipe.run()
    """
    assert run(PIPELINE + textwrap.dedent(program)) == "[0, 0, 0, 0, 0]\n"


class Forks:
    """What `os.fork` calls around a fork, for a context of the test's own."""

    def __init__(self):
        self.no_fork = NoFork()
        self.forked = threading.Event()

    def fork(self):
        self.no_fork._before()
        self.forked.set()
        self.no_fork._after_in_parent()

    def wait_for_forking(self):
        while not self.no_fork._forking:
            time.sleep(0)


@pytest.fixture
def forks():
    return Forks()


def test_a_fork_waits_for_others(forks):
    with forks.no_fork:
        thread = threading.Thread(target=forks.fork)
        thread.start()
        forks.wait_for_forking()
        with forks.no_fork:
            pass
        assert not forks.forked.is_set()
    thread.join()
    assert forks.forked.is_set()


def test_nobody_enters_while_somebody_waits_to_fork(forks):
    order = []

    def enter():
        with forks.no_fork:
            order.append(forks.forked.is_set())

    with forks.no_fork:
        forking = threading.Thread(target=forks.fork)
        forking.start()
        forks.wait_for_forking()
        entering = threading.Thread(target=enter)
        entering.start()
        while not forks.no_fork._changed._waiters or len(forks.no_fork._changed._waiters) < 2:
            time.sleep(0)
    forking.join()
    entering.join()
    assert order == [True]


def test_threads_inside_fork_without_waiting_for_one_another(forks):
    both = threading.Barrier(2)

    def inside():
        with forks.no_fork:
            both.wait()
            forks.fork()

    threads = [threading.Thread(target=inside) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert forks.forked.is_set()


def test_a_child_forgets_the_threads_of_its_parent(forks):
    inside, leave = threading.Event(), threading.Event()

    def stay():
        with forks.no_fork:
            inside.set()
            leave.wait()

    thread = threading.Thread(target=stay)
    thread.start()
    inside.wait()
    forks.no_fork._after_in_child()
    forks.fork()
    assert forks.forked.is_set()
    forks.no_fork._inside[thread.ident] = 1  # its own exit is the parent's
    leave.set()
    thread.join()
