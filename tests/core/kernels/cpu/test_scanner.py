"""Processes that scan videos, which all readers of a program share."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from headrace.errors import BadSampleError
from headrace.kernels.cpu.video import scanner
from headrace.kernels.cpu.video.scanner import PROCESSES
from tests.e2e.support import REPOSITORY
from tests.support.processes import lives, wait_until
from tests.support.videos import write_video

pytest.importorskip("av")
pytestmark = pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="looks into /proc")


@pytest.fixture(scope="module")
def video(tmp_path_factory):
    return write_video(tmp_path_factory.mktemp("videos") / "a.mp4", frames=3)


@pytest.fixture(autouse=True)
def processes(monkeypatch):
    """Processes wherever tests run, none of them from before, and none left behind."""
    monkeypatch.setenv("HEADRACE_WORKERS", "processes")
    PROCESSES.close()
    yield
    PROCESSES.close()
    assert not PROCESSES._alive


def scan(source):
    """Number of frames; bytes are scanned each time, files might be known."""
    data = np.fromfile(source, np.uint8) if isinstance(source, str) else source
    return len(scanner.index_of(data, sound=False, orientation=False))


def pids():
    return [process._process.pid for _, process in PROCESSES._idle]


def test_one_process_scans_for_one_reader_after_the_other(video):
    assert scan(video) == 3
    (first,) = pids()
    with pytest.raises(BadSampleError):
        scan(np.zeros(9, np.uint8))
    assert scan(video) == 3
    assert pids() == [first]


def test_as_many_are_kept_as_a_reader_uses(video, monkeypatch):
    monkeypatch.setattr(scanner, "MOST_AT_ONCE", 1)
    with PROCESSES.lent() as other:
        assert scan(video) == 3
        (kept,) = pids()
    assert pids() == [kept]
    assert not Path(f"/proc/{other._process.pid}").exists()


def test_idle_ones_end(monkeypatch):
    """They, the thread that ends them and the open files are gone then."""
    files = len(os.listdir("/proc/self/fd"))
    monkeypatch.setattr(scanner, "_IDLE_SECONDS", 0.0)
    with PROCESSES.lent() as process:
        pass
    wait_until(lambda: not PROCESSES._alive and PROCESSES._ender is None)
    wait_until(lambda: "headrace-scanners" not in [t.name for t in threading.enumerate()])
    assert len(os.listdir("/proc/self/fd")) == files
    assert not Path(f"/proc/{process._process.pid}").exists()  # nor is it a zombie


def test_one_that_was_killed_while_it_was_idle_is_no_crash(video, monkeypatch):
    monkeypatch.setattr(scanner, "_TRIES", 1)
    scan(video)
    (pid,) = pids()
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not lives(pid))
    assert scan(video) == 3
    assert pid not in pids()


def test_a_second_try_takes_a_process_that_has_scanned_nothing(video, monkeypatch):
    """What an earlier file did to idle processes makes no other file bad."""
    with PROCESSES.lent(), PROCESSES.lent():
        pass
    idle = pids()
    own = scanner._Process.scan

    def fails_in_old_ones(self, *args):
        if self._process.pid in idle:
            self._process.kill()
        return own(self, *args)

    monkeypatch.setattr(scanner._Process, "scan", fails_in_old_ones)
    assert scan(video) == 3


def test_files_are_found_by_names_within_the_folder_of_now(video, tmp_path, monkeypatch):
    scan(video)
    write_video(tmp_path / "a.mp4", frames=5)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(scanner.POOL, "known", lambda key: None)
    assert len(scanner.index_of("a.mp4", sound=False, orientation=False)) == 5


WARNINGS = "-W", "ignore::DeprecationWarning", "-W", "error::ResourceWarning"
"""A fork beside threads is what is tested; a process that nobody waited for is a fault."""
PROGRAM = """
import os, sys
import numpy as np
from headrace.kernels.cpu.video import scanner

def scan():
    data = np.fromfile(sys.argv[1], np.uint8)
    scanner.index_of(data, sound=False, orientation=False)
    return scanner.PROCESSES._idle[0][1]._process.pid

own = scan()
child = os.fork()
pid = scan()
print(pid, flush=True)
if child:
    os.waitpid(child, 0)
    assert pid == own
else:
    assert pid != own
"""


def test_a_fork_has_its_own_and_all_end_with_their_programs(video):
    done = subprocess.run(
        [sys.executable, *WARNINGS, "-c", PROGRAM, video],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    found = [int(line) for line in done.stdout.split()]
    assert len(set(found)) == 2
    assert not [pid for pid in found if lives(pid)]
