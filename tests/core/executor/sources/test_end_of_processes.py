"""However a program ends, its workers end with it."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from headrace.errors import SourceWorkerError
from tests.core.executor.sources import sources
from tests.core.executor.sources.sources import pipeline, run

ROOT = Path(__file__).parents[4]
PATIENCE_SECONDS = 60

START = """
import os, signal, sys, time
from tests.core.executor.sources import sources
from tests.core.executor.sources.sources import pipeline

if __name__ == "__main__":
    pipe = pipeline({source}, options={{"py_start_method": {method!r}}}, **{arguments!r})
    pipe.build()
    print(*pipe._py_pool.pids(), flush=True)
    {ending}
"""


def is_alive(pid):
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        if os.path.isdir("/proc/self"):
            return False
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, 0)
            return True
        return False
    return state != "Z"


def wait_until_gone(pids):
    end = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < end:
        alive = [pid for pid in pids if is_alive(pid)]
        if not alive:
            return
        time.sleep(0.02)
    raise AssertionError(f"processes {alive} are left behind")


class Program:
    """A program with a pipeline, in a process group of its own."""

    def __init__(self, tmp_path, ending, source="sources.forever", method="fork", **arguments):
        path = tmp_path / "program.py"
        path.write_text(
            START.format(source=source, method=method, ending=ending, arguments=arguments)
        )
        self.process = subprocess.Popen(
            [sys.executable, str(path)],
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.pids = [int(word) for word in self.process.stdout.readline().split()]

    def wait_for(self, word):
        assert self.process.stdout.readline().strip() == word

    def finish(self):
        """Exit code and error output; no worker may be left."""
        try:
            errors = self.process.communicate(timeout=PATIENCE_SECONDS)[1]
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            raise
        assert len(self.pids) == 2, errors
        wait_until_gone(self.pids)
        return self.process.returncode, errors


@pytest.mark.parametrize(
    ("method", "ending", "code"),
    [
        ("fork", "pipe.run()", 0),
        ("spawn", "pipe.run()", 0),
        ("forkserver", "pipe.run()", 0),
        ("fork", "pipe.run(); sys.exit(5)", 5),
        ("fork", "del pipe", 0),
        ("spawn", "pass", 0),
        ("fork", "import threading; threading.Thread(target=pipe.run).start()", 0),
    ],
    ids=["end", "end-spawn", "end-forkserver", "exit", "del", "unused-spawn", "thread"],
)
def test_the_program_ends(tmp_path, method, ending, code):
    assert Program(tmp_path, ending, method=method).finish() == (code, "")


def test_the_program_ends_while_a_source_is_at_work(tmp_path):
    program = Program(tmp_path, "pipe._engine.queues.collect()", "sources.hanging", batch=False)
    assert program.finish() == (0, "")


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_the_program_is_killed(tmp_path, method):
    program = Program(
        tmp_path, "pipe.run(); print('ready', flush=True); time.sleep(1000)", method=method
    )
    program.wait_for("ready")
    program.process.kill()
    assert program.finish()[0] == -signal.SIGKILL


def test_the_program_is_killed_while_a_source_is_at_work(tmp_path):
    ending = "pipe.run(); print('ready', flush=True); pipe.run(); pipe.run()"
    program = Program(tmp_path, ending, "sources.hanging", batch=False, prefetch_queue_depth=1)
    program.process.kill()
    assert program.finish()[0] == -signal.SIGKILL


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_ctrl_c(tmp_path, method):
    ending = "print('ready', flush=True)\n    while True: pipe.run()"
    program = Program(tmp_path, ending, method=method)
    program.wait_for("ready")
    os.killpg(program.process.pid, signal.SIGINT)
    code, errors = program.finish()
    assert code == -signal.SIGINT
    assert errors.rstrip().endswith("KeyboardInterrupt")
    assert errors.count("Traceback") == 1  # the workers say nothing


def test_ctrl_c_while_a_source_is_waited_for(tmp_path):
    ending = "print('ready', flush=True); pipe.run(); pipe.run(); pipe.run()"
    program = Program(tmp_path, ending, "sources.hanging", batch=False)
    program.wait_for("ready")
    os.killpg(program.process.pid, signal.SIGINT)
    code, errors = program.finish()
    assert code == -signal.SIGINT
    assert errors.rstrip().endswith("KeyboardInterrupt")


def test_after_a_ctrl_c_it_goes_on(tmp_path):
    ending = """
    import threading, numpy as np
    before = [int(np.asarray(pipe.run()[0].at(0))[0, 0]) for _ in range(3)]
    for k in range(20):
        threading.Timer(0.01, os.kill, (os.getpid(), signal.SIGINT)).start()
        try:
            while True:
                before.append(int(np.asarray(pipe.run()[0].at(0))[0, 0]))
        except KeyboardInterrupt:
            pass
    # One that was interrupted between its making and its return may be missing.
    steps = [b - a for a, b in zip(before, before[1:])]
    assert set(steps) <= {1, 2}, steps
    """
    code, errors = Program(tmp_path, ending.strip()).finish()
    assert code == 0 or "was cut off" in errors, errors


def _kill_rounds(rounds, seed):
    chance = random.Random(seed)
    for number in range(rounds):
        source, arguments, workers = [
            (sources.numbered, {"batch": False}, 2),
            (sources.forever, {"prefetch_queue_depth": 3}, 3),
            (_endless, {}, 1),
        ][number % 3]
        pipe = pipeline(source, options={"py_num_workers": workers}, **arguments)
        pipe.build()
        pids = pipe._py_pool.pids()
        signals = [
            kind
            for kind in (signal.SIGKILL, signal.SIGTERM, signal.SIGHUP)
            # Tests started by nohup, and their children, ignore SIGHUP.
            if signal.getsignal(kind) is not signal.SIG_IGN
        ]
        kill = threading.Timer(
            chance.random() * 0.05, os.kill, (chance.choice(pids), chance.choice(signals))
        )
        kill.start()
        with pytest.raises(SourceWorkerError, match="was killed by signal SIG"):
            run(pipe, 1_000_000)
        kill.join()
        wait_until_gone(pids)
        assert not _segments()


def _endless():
    number = 0
    while True:
        yield [sources.np.full((50, number % 7 + 1), number)] * 4
        number += 1


def _segments():
    folder = Path("/dev/shm")
    if not folder.is_dir():
        return []
    found = [p for p in folder.iterdir() if p.name.startswith("headrace")]
    return [p for p in found if not p.name.startswith("headrace-cache")]  # `fn.cache` of others


def test_workers_are_killed_at_random():
    _kill_rounds(12, seed=1)


@pytest.mark.nightly
def test_workers_are_killed_at_random_many_times():
    _kill_rounds(200, seed=2)
