"""Names of DALI's plugin besides its datasets."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from penstock import Pipeline, errors, plugin
from penstock.plugin.tf import DALIDataset, dataset_options, serialize_pipeline
from tests.jax.pipelines import file_pipeline, source_pipeline

BATCHES = [np.full((2, 3), k, np.float32) for k in range(3)]


def test_operations_of_tensorflow_1_say_what_to_use(files):
    pipe = file_pipeline(files)
    for name, arguments in [
        ("DALIIterator", {}),
        ("DALIRawIterator", {}),
        ("DALIIteratorWrapper", {"pipeline": pipe, "shapes": [(4, 64)], "dtypes": [tf.uint8]}),
        ("DALIIteratorWrapper", {"serialized_pipeline": pipe.serialize(), "device_id": 0}),
    ]:
        with pytest.raises(errors.NotYetSupportedError, match=rf"tf\.{name}`.*`DALIDataset\(") as e:
            getattr(plugin.tf, name)(**arguments)
        assert isinstance(e.value, NotImplementedError)


def test_what_they_say_to_use_works():
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        dataset = DALIDataset(
            source_pipeline(BATCHES), tf.float32, (2, 3), batch_size=2, device_id=None
        )
        (tensor,) = tf.compat.v1.data.make_one_shot_iterator(dataset).get_next()
        for expected in BATCHES:
            assert np.array_equal(session.run(tensor), expected)
        with pytest.raises(tf.errors.OutOfRangeError):
            session.run(tensor)


def test_serialized_pipelines_and_options_of_datasets(files):
    pipe = Pipeline.deserialize(serialize_pipeline(file_pipeline(files)))
    options = dataset_options()
    assert not options.autotune.enabled
    assert not options.experimental_optimization.apply_default_optimizations
    dataset = DALIDataset(pipe, batch_size=4, device_id=None).with_options(options)
    assert [label.numpy().ravel().tolist() for _, label in dataset.take(2)] == [
        [0, 1, 2, 3],
        [4, 5, 6, 7],
    ]
    with pytest.raises(RuntimeError):  # DALI's class
        serialize_pipeline(source_pipeline(BATCHES))


def test_modules_have_the_names_of_dalis():
    names = {
        "DALIDataset",
        "DALIIterator",
        "DALIIteratorWrapper",
        "DALIRawIterator",
        "dataset_compatible_tensorflow",
        "dataset_distributed_compatible_tensorflow",
        "dataset_inputs_compatible_tensorflow",
        "dataset_options",
        "experimental",
        "serialize_pipeline",
    }
    assert names <= set(dir(plugin.tf)) == set(plugin.tf.__all__)
    assert dir(plugin.tf.experimental) == ["DALIDatasetWithInputs", "Input"]
    assert all(getattr(plugin.tf, name).__doc__ for name in names)
