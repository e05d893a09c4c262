"""Pipelines that run Python: sources in worker processes, and functions between operators."""

from __future__ import annotations

import multiprocessing
import os

import numpy as np
import pytest
import tensorflow as tf

from headrace import Pipeline, fn
from headrace.plugin.tf import DALIDataset
from tests.support.processes import lives, wait_until
from tests.tf.sources import SAMPLES, numbered


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_parallel_external_source(method):
    """Two epochs, each in processes of its own, that end with the dataset."""
    pipe = Pipeline(2, 1, None, py_num_workers=1, py_start_method=method)
    with pipe:
        pipe.set_outputs(fn.external_source(numbered, batch=False, parallel=True))
    dataset = DALIDataset(pipe, tf.int64, ((2, 2),), batch_size=2, device_id=None)
    workers = set()
    for _ in range(2):
        found = np.concatenate([batch.numpy() for (batch,) in dataset.prefetch(2)])
        assert found[:, 0].tolist() == list(range(SAMPLES))
        workers |= set(found[:, 1].tolist())
    assert os.getpid() not in workers
    del dataset
    wait_until(lambda: not any(lives(pid) for pid in workers))
    assert not multiprocessing.active_children()


def test_python_function():
    """Of the user's own; its errors are those of the iterator."""

    def scaled(array):
        if array[0] == 4:
            raise ValueError("no fours")
        return array * 10

    pipe = Pipeline(2, 2, None)
    with pipe:
        data = fn.external_source([np.full((2, 1), n, np.int64) for n in range(6)])
        pipe.set_outputs(fn.python_function(data, function=scaled), data + 1)
    dataset = DALIDataset(pipe, (tf.int64, tf.int64), ((2,), (2,)), batch_size=2, device_id=None)
    for _ in range(2):
        iterator = iter(dataset)
        for n in range(4):
            assert [part.numpy().tolist() for part in next(iterator)] == [[10 * n] * 2, [n + 1] * 2]
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"(?s)no fours.*python_function"):
            next(iterator)
        assert next(iterator)[1].numpy().tolist() == [6, 6]
