"""Pipelines in worker processes, and programs with such, for tests of how they live and end."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np

from headrace import fn, pipeline_def
from tests.e2e.support import REPOSITORY

PATIENCE_SECONDS = 60


def wait_until(condition, seen=lambda: ""):
    """Wait for a condition; `seen` tells what there is instead, where that is in vain."""
    end = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < end, f"waited in vain: {seen()}"
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


def numbers(batch_size=8, num_threads=2, workers="processes", **options):
    """A pipeline of increasing numbers, each of them an array."""
    counter = iter(range(10**9))

    @pipeline_def(
        batch_size=batch_size,
        num_threads=num_threads,
        device_id=None,
        workers=workers,
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


PROGRAM = """
    import os, sys, time
    import numpy as np
    from headrace import fn, pipeline_def

    print("imported", flush=True)  # once: workers import nothing of this

    @pipeline_def(batch_size=4, num_threads=2, device_id=None, workers="processes")
    def p():
        return fn.external_source(lambda: [np.full(100, 7, np.int32)] * 4) + 1

    pipe = p()
    for _ in range(3):
        assert int(np.array(pipe.run()[0][0])[0]) == 8
    from headrace.executor.processes.server_process import SERVER
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
