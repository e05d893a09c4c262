"""Pipelines in worker processes beside PyTorch's own, which are forked or spawned."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.e2e.support import REPOSITORY

pytestmark = pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="needs Linux")

PROGRAM = """
import sys

import numpy as np
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

from headrace import fn, pipeline_def


@pipeline_def(batch_size=4, num_threads=2, device_id=None, workers="processes")
def doubled(first):
    numbers = iter(range(first, 1000))
    return fn.external_source(lambda: [np.full(100, next(numbers), np.int32) for _ in range(4)]) * 2


def batch(pipe):
    (output,) = pipe.run()
    assert pipe.executor_statistics()["workers"] == "processes"
    return [int(np.array(sample)[50]) for sample in output]


class Doubled(IterableDataset):
    def __iter__(self):
        pipe = doubled(100 * get_worker_info().id)
        for _ in range(3):
            yield from batch(pipe)


if __name__ == "__main__":
    pipe = doubled(0)
    kept = pipe.run()[0]
    done = 1
    loader = DataLoader(
        Doubled(), num_workers=2, batch_size=12, multiprocessing_context=sys.argv[1]
    )
    for numbers in loader:  # one batch from each of its workers
        first = int(numbers[0])
        assert numbers.tolist() == list(range(first, first + 24, 2)), numbers
        assert batch(pipe) == list(range(8 * done, 8 * done + 8, 2))
        done += 1
    assert done == 3
    assert [int(np.array(sample)[99]) for sample in kept] == [0, 2, 4, 6]
"""


@pytest.mark.parametrize("method", ["fork", pytest.param("spawn", marks=pytest.mark.nightly)])
def test_pipelines_inside_the_workers_of_a_data_loader_and_beside_them(tmp_path, method):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, str(program), method],
        capture_output=True,
        text=True,
        timeout=240,
        cwd=REPOSITORY,
    )
    assert (done.returncode, done.stderr) == (0, "")
