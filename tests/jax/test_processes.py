"""Two processes, with four devices each, feed one computation (see `process_program`)."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture(scope="module")
def found(files, tmp_path_factory):
    """What the two processes saw."""
    folder = tmp_path_factory.mktemp("processes")
    port = str(free_port())
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.jax.process_program", str(k), port, str(folder), *files],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": path},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for k in range(2)
    ]
    try:
        told = [process.communicate(timeout=110)[0] for process in processes]
    finally:
        for process in processes:
            process.kill()
    assert all(process.returncode == 0 for process in processes), "\n".join(told)
    return [json.loads((folder / f"{k}.json").read_text()) for k in range(2)]


def rows(found, case):
    """The samples of each step of both processes, without those that are copies."""
    return [
        [row for process in found for part in process[case][k]["devices"].values() for row in part]
        for k in range(len(found[0][case]))
    ]


@pytest.mark.parametrize("case", ["fill", "drop", "split", "alternating"])
def test_each_process_feeds_its_devices(found, case):
    steps = rows(found, case)
    for k, step in enumerate(steps):
        assert len(step) == 8
        for process in found:
            assert process[case][k]["shape"] == [8, 1]
            assert process[case][k]["sum"] == sum(step), "all processes compute the same"
            assert process[case][k]["agree"]
    shown = [row for step in steps for row in step]
    if case == "drop":
        assert len(set(shown)) == len(shown) == 16
    else:
        assert set(shown) == set(range(21))
    devices = [[int(d) for d in process[case][0]["devices"]] for process in found]
    assert len(devices[0]) == len(devices[1]) == 4
    assert not set(devices[0]) & set(devices[1])


def test_a_replicated_output(found):
    for process in found:
        for step in process["replicated"]:
            copies = list(step["devices"].values())
            assert all(copy == copies[0] and len(copy) == 8 for copy in copies)
            assert step["agree"]
    assert found[0]["replicated"][0]["sum"] == found[1]["replicated"][0]["sum"]


@pytest.mark.parametrize("case", ["crossed", "crossed, split"])
def test_copies_in_other_processes(found, case):
    for k in range(len(found[0][case])):
        parts = [list(process[case][k]["devices"].values()) for process in found]
        assert parts[0] == parts[1]
    shown = {r for step in found[0][case] for part in step["devices"].values() for r in part}
    assert shown == set(range(21))


def test_functions_of_global_arrays(found):
    for rank, process in enumerate(found):
        expected = [[10 * k + 4 * rank + r - (80 * k + 28) for r in range(4)] for k in range(6)]
        assert process["function"] == expected
        assert process["function of several"] == expected, "with four devices of each process"


def test_errors(found):
    for process in found:
        told = process["errors"]
        assert "several processes: none of them has the last rows" in told["partial"]
        assert "`seed` is needed" in told["seed"]
        assert "`devices` is for one process, and there are 2" in told["devices"]
        assert "no section of the batch" in told["split"]
        assert "`batch_size`=12 is not divisible by the 8 parts" in told["indivisible"]
    assert found[0]["errors"]["elsewhere"] == ""
    assert "none of the devices of this process (1)" in found[1]["errors"]["elsewhere"]
