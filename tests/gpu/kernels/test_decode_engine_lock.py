from __future__ import annotations

import os
import subprocess
import sys
import threading

import pytest

from headrace.kernels.gpu.decode import engine_lock
from headrace.kernels.gpu.decode.engine_lock import (
    acquire_engines,
    engine_lock_at,
    path_of,
    release_engines,
)

pytestmark = pytest.mark.skipif(os.name != "posix", reason="files cannot be locked here")


@pytest.fixture(autouse=True)
def _emulated(emulated_gpu):
    pass


def busy(first, second, count=20):
    """How many are inside at most while two threads go in and out, as processes do."""
    inside, most = [], [0]

    def work(mine):
        for _ in range(count):
            acquire_engines(mine)
            inside.append(1)
            most[0] = max(most[0], len(inside))
            inside.pop()
            release_engines(mine)

    threads = [threading.Thread(target=work, args=(t,)) for t in (first, second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
        assert not thread.is_alive()
    return most[0]


def is_taken(path):
    """Whether somebody has the turn."""
    mine = engine_lock_at(path)
    mine[1] = 0
    acquire_engines(mine)
    taken = bool(mine[0] < 0)
    if not taken:
        release_engines(mine)
    return taken


def test_processes_take_turns(tmp_path):
    # Each opens the file by itself, as processes do.
    path = tmp_path / "one"
    assert busy(engine_lock_at(path), engine_lock_at(path)) == 1
    mine = engine_lock_at(path)
    acquire_engines(mine)
    assert is_taken(path)
    release_engines(mine)
    assert not is_taken(path)


def test_who_lets_go_leaves_time_for_who_waits(tmp_path):
    path = tmp_path / "one"
    mine, other = engine_lock_at(path), engine_lock_at(path)
    acquire_engines(mine)
    other[1] = 1
    acquire_engines(other)  # in vain, but said so
    assert path.read_bytes() != b"\0"
    release_engines(mine)
    assert path.read_bytes() == b"\0"


def test_a_process_that_ends_in_its_turn_leaves_it(tmp_path):
    program = (
        "import os, sys; from pathlib import Path; "
        "from headrace.kernels.gpu.decode.engine_lock import acquire_engines, engine_lock_at; "
        "acquire_engines(engine_lock_at(Path(sys.argv[1]))); print('in', flush=True); "
        "sys.stdin.readline(); "
        "os._exit(0)"
    )
    path = tmp_path / "one"
    command = [sys.executable, "-c", program, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"in\n"
        entered = threading.Event()

        def enter():
            mine = engine_lock_at(path)
            acquire_engines(mine)
            entered.set()
            release_engines(mine)

        thread = threading.Thread(target=enter)
        thread.start()
        assert not entered.wait(0.1)
        process.communicate(b"\n")
        thread.join(20)
    assert entered.is_set()


def test_devices_do_not_wait_for_each_other(tmp_path):
    one, other = engine_lock_at(tmp_path / "one"), engine_lock_at(tmp_path / "other")
    acquire_engines(one)
    acquire_engines(other)
    release_engines(one)
    release_engines(other)


def test_nobody_waits_for_ever(tmp_path, monkeypatch):
    monkeypatch.setattr(engine_lock, "_PATIENCE_NANOSECONDS", 1000)
    path = tmp_path / "one"
    mine, hanging = engine_lock_at(path), engine_lock_at(path)
    acquire_engines(hanging)
    for _ in range(3):
        acquire_engines(mine)
        release_engines(mine)
    assert mine[0] == -1
    assert is_taken(path)


def test_no_file_no_turns():
    alone = engine_lock_at(None)
    for _ in range(2):
        acquire_engines(alone)
    release_engines(alone)


def test_a_file_that_cannot_be(tmp_path):
    nowhere = engine_lock_at(tmp_path / "missing" / "one")
    for _ in range(2):
        acquire_engines(nowhere)
        release_engines(nowhere)
    target = tmp_path / "target"
    target.touch()
    (tmp_path / "link").symlink_to(target)
    assert engine_lock_at(tmp_path / "link")[0] == -1


def test_the_file_of_another_user(tmp_path):
    path = tmp_path / "one"
    path.touch()
    path.chmod(0o444)
    assert busy(engine_lock_at(path), engine_lock_at(path)) == 1


def test_one_name_one_file():
    assert path_of("0000:1B:00.0") == path_of("0000:1B:00.0")
    assert path_of("0000:1B:00.0") != path_of("0000:1C:00.0")
