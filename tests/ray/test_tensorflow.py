"""`tf.data` programs over pipelines on a cluster."""

from __future__ import annotations

import gc

import numpy as np
import pytest

pytest.importorskip("ray")
pytest.importorskip("tensorflow")

import tensorflow as tf

from headrace.plugin.ray import distribute
from headrace.plugin.tf import DALIDataset, LastBatchPolicy
from tests.ray.iterators import numbered

pytestmark = pytest.mark.usefixtures("cluster")

_SETTINGS = {
    "batch_size": 4,
    "num_threads": 1,
    "device_id": None,
    "output_dtypes": (tf.float32, tf.int32, tf.float32),
    "reader_name": "reader",
    "last_batch_policy": LastBatchPolicy.PARTIAL,
}


def _epoch(dataset):
    return [[np.asarray(each) for each in batch] for batch in dataset]


def test_batches_are_those_without_a_cluster(images):
    """In `tf.data`'s own threads, with what it prefetches, and in a second epoch."""
    theirs = DALIDataset(numbered(images, batch_size=4), **_SETTINGS)
    pipeline = distribute(numbered(images, batch_size=4), 2, resources={"num_cpus": 0.2})
    ours = DALIDataset(pipeline, **_SETTINGS).prefetch(2)
    for _ in range(2):
        expected, found = _epoch(theirs), _epoch(ours)
        assert [len(batch[0]) for batch in found] == [4, 4, 4, 4, 4, 2]
        for one, other in zip(found, expected, strict=True):
            for mine, his in zip(one, other, strict=True):
                assert mine.dtype == his.dtype
                np.testing.assert_array_equal(mine, his)
    gc.collect()
