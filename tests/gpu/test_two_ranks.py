"""Two ranks of PyTorch under torchrun, each with its GPU and processors; else on the CPU."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import uuid
from pathlib import Path

import cv2
import numpy as np
import pytest

torch = pytest.importorskip("torch")

ROOT = Path(__file__).parents[2]
FILES = 53


@pytest.fixture(autouse=True)
def gpu_runtime():
    """Nothing: the ranks are processes of their own, which see the real GPUs or none."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ranks")
    rng = np.random.default_rng(1)
    for number in range(FILES):
        image = cv2.GaussianBlur(rng.integers(0, 255, (80 + number, 90, 3), np.uint8), (5, 5), 2)
        path = folder / str(number % 4) / f"{number:03}.jpg"
        path.parent.mkdir(exist_ok=True)
        assert cv2.imwrite(str(path), image)
    return folder


def ranks(*arguments, mark=""):
    """Run a program with two ranks."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    return subprocess.run(
        [*command, "-m", *map(str, arguments)],
        cwd=ROOT,
        env={**os.environ, "HEADRACE_TEST_MARK": mark, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


def found(done):
    assert done.returncode == 0, done.stderr[-4000:]
    (line,) = [row for row in done.stdout.splitlines() if row.startswith("FOUND ")]
    return json.loads(line.removeprefix("FOUND "))


@pytest.mark.parametrize("kind", ["ddp", pytest.param("fsdp", marks=pytest.mark.nightly)])
def test_a_training_sees_each_sample_once_an_epoch(folder, kind):
    result = found(ranks("tests.gpu.programs.training", folder, kind, 2))
    (one, steps, total, own), (other, other_steps, other_total, others) = result["ranks"]
    assert steps == other_steps == 2 * math.ceil(math.ceil(FILES / 2) / 8)
    assert total == other_total
    if len(os.sched_getaffinity(0)) > 1:
        assert not set(own) & set(others)
    names = {str(path.relative_to(folder)) for path in folder.glob("*/*.jpg")}
    for first, second in zip(one, other, strict=True):
        assert not set(first) & set(second)
        assert set(first) | set(second) == names
        assert len(first) + len(second) == FILES


def _marked(mark):
    """Processes that have `mark` in their environment."""
    left = []
    for process in Path("/proc").iterdir():
        if process.name.isdigit() and int(process.name) != os.getpid():
            try:
                if mark.encode() in (process / "environ").read_bytes():
                    left.append(int(process.name))
            except OSError:
                continue
    return left


def test_a_killed_rank_ends_the_training_and_leaves_nothing(folder):
    mark = uuid.uuid4().hex
    done = ranks("tests.gpu.programs.training", folder, "ddp", 3, 4, mark=mark)
    assert done.returncode != 0
    assert "Signal 9 (SIGKILL)" in done.stderr
    assert "rank      : 1" in done.stderr
    while left := _marked(mark):  # the system may take a moment to take them away
        os.sched_yield()
        assert all(pid > 0 for pid in left)


@pytest.mark.parametrize(
    "rounds", [12, pytest.param(200, marks=pytest.mark.nightly)], ids=lambda n: f"{n} rounds"
)
def test_starting_and_stopping_leaves_nothing(folder, rounds):
    for early, late in found(ranks("tests.gpu.programs.rounds", folder, rounds)):
        assert late["threads"] <= early["threads"]
        assert late["files"] <= early["files"]
        assert late["children"] <= early["children"]
        assert late["locked_kilobytes"] <= early["locked_kilobytes"]
        if "device_megabytes" in early:  # pools grow by a step at most, once
            assert late["device_megabytes"] <= early["device_megabytes"] + 64
