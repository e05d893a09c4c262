"""Pipelines whose samples tell which they are."""

from __future__ import annotations

import numpy as np

from headrace import fn
from headrace.pipeline import Pipeline

OUTPUTS = ["data", "label"]


def read(files, num_shards=1, shard_id=0, **arguments):
    """The graph: content and label of each file."""
    data, label = fn.readers.file(
        files=files, num_shards=num_shards, shard_id=shard_id, name="reader", **arguments
    )
    return data, label


def file_pipeline(files, num_shards=1, shard_id=0, batch_size=4, seed=None, **arguments):
    pipe = Pipeline(batch_size, 2, None, seed=seed)
    with pipe:
        pipe.set_outputs(*read(files, num_shards, shard_id, **arguments))
    return pipe


def source_pipeline(batches, batch_size=None, **arguments):
    pipe = Pipeline(batch_size or len(batches[0]), 1, None)
    with pipe:
        pipe.set_outputs(fn.external_source(source=batches, batch=True, **arguments))
    return pipe


def labels(array):
    """Numbers of the samples of one step, in their order."""
    return np.asarray(array).ravel().tolist()


def epoch(it):
    """Numbers of the samples of one epoch, step by step."""
    return [labels(step["label"]) for step in it]
