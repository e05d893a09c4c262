"""Iterators that are saved and restored, and datasets over several devices."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from headrace import Pipeline, fn
from headrace.plugin.tf import DALIDataset
from tests.jax.pipelines import file_pipeline


def pipeline(files, **arguments):
    """Shuffled files and random numbers."""
    pipe = Pipeline(4, 2, None, seed=3, **arguments)
    with pipe:
        data, label = fn.readers.file(files=files, random_shuffle=True, name="reader")
        pipe.set_outputs(data, label, fn.random.uniform())
    return pipe


def dataset(files, **arguments):
    pipe = pipeline(files, enable_checkpointing=True)
    return DALIDataset(pipe, batch_size=4, device_id=None, **arguments)


def taken(iterator, steps):
    """Labels and random numbers."""
    return [
        (label.numpy().ravel().tolist(), number.numpy().tolist())
        for _, (_, label, number) in zip(range(steps), iterator, strict=False)
    ]


@pytest.mark.parametrize("reader_name", [None, "reader"])
def test_a_restored_iterator_goes_on_exactly(files, tmp_path, reader_name):
    """Whatever TensorFlow has prefetched, in the middle of an epoch and in a dataset made anew."""

    def elements(ds):
        return iter(ds.map(lambda *parts: parts).prefetch(2))

    iterator = elements(dataset(files, reader_name=reader_name))
    for steps in (1, 3):
        taken(iterator, steps)
        path = tf.train.Checkpoint(iterator=iterator).save(str(tmp_path / "saved"))
        again = elements(dataset(files, reader_name=reader_name))
        taken(again, 2)
        tf.train.Checkpoint(iterator=again).restore(path).assert_consumed()
        whole = taken(again, 30)
        assert reader_name is None or len(whole) < 6
        path = tf.train.Checkpoint(iterator=iterator).save(str(tmp_path / "saved"))
        assert taken(iterator, 1) == whole[:1]
        tf.train.Checkpoint(iterator=iterator).restore(path)
        assert taken(iterator, 1) == whole[:1]


def test_an_iterator_restored_into_itself(files, tmp_path):
    iterator = iter(dataset(files))
    taken(iterator, 2)
    saved = tf.train.Checkpoint(iterator=iterator)
    path = saved.save(str(tmp_path / "saved"))
    expected = taken(iterator, 4)
    for _ in range(2):
        saved.restore(path)
        assert taken(iterator, 4) == expected


def test_without_checkpointing_there_is_a_clear_error(files, tmp_path):
    ds = DALIDataset(pipeline(files), batch_size=4, device_id=None)
    iterator = iter(ds)
    next(iterator)
    path = tf.train.Checkpoint(iterator=iterator).save(str(tmp_path / "saved"))
    taken(iterator, 5)
    again = iter(ds)
    tf.train.Checkpoint(iterator=again).restore(path)
    with pytest.raises(tf.errors.InvalidArgumentError, match="`enable_checkpointing=True`"):
        taken(again, 5)


def shards(strategy, elements):
    return [
        [np.asarray(v).ravel().tolist() for v in strategy.experimental_local_results(label)]
        for _, label in elements
    ]


def test_strategies(files):
    """A global batch that is cut; one reader for all replicas; one reader for each."""
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    files = files[:20]

    def part(context):
        pipe = file_pipeline(
            files, num_shards=context.num_input_pipelines, shard_id=context.input_pipeline_id
        )
        return DALIDataset(pipe, batch_size=2, device_id=None, reader_name="reader")

    whole = DALIDataset(file_pipeline(files), batch_size=4, device_id=None, reader_name="reader")
    cut = [[[k, k + 1], [k + 2, k + 3]] for k in range(0, 20, 4)]
    found = strategy.experimental_distribute_dataset(whole)
    assert shards(strategy, found) == cut
    found = strategy.distribute_datasets_from_function(part)
    assert shards(strategy, found) == cut
    options = tf.distribute.InputOptions(
        experimental_place_dataset_on_device=True,
        experimental_fetch_to_device=False,
        experimental_replication_mode=tf.distribute.InputReplicationMode.PER_REPLICA,
    )
    found = strategy.distribute_datasets_from_function(part, options)
    expected = [[[k, k + 1], [10 + k, 11 + k]] for k in range(0, 10, 2)]
    assert shards(strategy, found) == expected
