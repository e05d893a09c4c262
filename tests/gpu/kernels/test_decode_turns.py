from __future__ import annotations

import os
import subprocess
import sys
import threading
import time

import pytest

from penstock.kernels.gpu.decode import turns
from penstock.kernels.gpu.decode.turns import Turns, turns_of

pytestmark = pytest.mark.skipif(os.name != "posix", reason="files cannot be locked here")


@pytest.fixture(autouse=True)
def _emulated(emulated_gpu):
    pass


def busy(first, second, count=20):
    """How many are inside at most while two threads go in and out."""
    inside, most = [], [0]

    def work(mine):
        for _ in range(count):
            with mine:
                inside.append(1)
                most[0] = max(most[0], len(inside))
                time.sleep(0.0005)
                inside.pop()

    threads = [threading.Thread(target=work, args=(t,)) for t in (first, second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
        assert not thread.is_alive()
    return most[0]


def test_threads_take_turns(tmp_path):
    shared = Turns(tmp_path / "one")
    assert busy(shared, shared) == 1


def test_processes_take_turns(tmp_path):
    # Each opens the file by itself, as processes do.
    assert busy(Turns(tmp_path / "one"), Turns(tmp_path / "one")) == 1


def test_a_process_that_ends_in_its_turn_leaves_it(tmp_path):
    program = (
        "import os, sys; from pathlib import Path; "
        "from penstock.kernels.gpu.decode.turns import Turns; "
        "Turns(Path(sys.argv[1])).__enter__(); print('in', flush=True); sys.stdin.readline(); "
        "os._exit(0)"
    )
    path = tmp_path / "one"
    command = [sys.executable, "-c", program, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"in\n"
        entered = threading.Event()

        def enter():
            with Turns(path):
                entered.set()

        thread = threading.Thread(target=enter)
        thread.start()
        assert not entered.wait(0.1)
        process.communicate(b"\n")
        thread.join(20)
    assert entered.is_set()


def test_devices_do_not_wait_for_each_other(tmp_path):
    with Turns(tmp_path / "one"), Turns(tmp_path / "other"):
        pass


def test_nobody_waits_for_ever(tmp_path, monkeypatch):
    monkeypatch.setattr(turns, "_PATIENCE_SECONDS", 0.01)
    mine = Turns(tmp_path / "one")
    with Turns(tmp_path / "one"):
        begin = time.monotonic()
        for _ in range(3):
            with mine:
                pass
        assert time.monotonic() - begin < 5
    with mine:
        pass


def test_a_file_that_cannot_be(tmp_path):
    nowhere = Turns(tmp_path / "missing" / "one")
    for _ in range(2):
        with nowhere:
            pass
    target = tmp_path / "target"
    target.touch()
    (tmp_path / "link").symlink_to(target)
    assert busy(Turns(tmp_path / "link"), Turns(tmp_path / "link"), 1) in (1, 2)


def test_the_file_of_another_user(tmp_path):
    path = tmp_path / "one"
    path.touch()
    path.chmod(0o444)
    assert busy(Turns(path), Turns(path)) == 1


def test_one_name_one_lock():
    assert turns_of("0000:1B:00.0") is turns_of("0000:1B:00.0")
    assert turns_of("0000:1B:00.0") is not turns_of("0000:1C:00.0")
