"""Names of DALI's plugin besides its datasets: operations, serialized pipelines, options."""

from __future__ import annotations

import gc
import threading

import numpy as np
import pytest
import tensorflow as tf

from headrace import Pipeline, errors, fn, plugin, types
from headrace.plugin.tf import (
    DALIDataset,
    DALIIterator,
    DALIIteratorWrapper,
    DALIRawIterator,
    dataset_options,
    serialize_pipeline,
)
from tests.jax.pipelines import file_pipeline, source_pipeline

BATCHES = [np.full((2, 3), k, np.float32) for k in range(3)]
ROWS = [[np.arange(k + 1).reshape(-1, 1), np.full((k, 2), k)] for k in range(3)]


@pytest.fixture
def session():
    with tf.Graph().as_default(), tf.compat.v1.Session() as found:
        yield found


def pipeline_of_both():
    """Dense batches, and samples of different shapes."""
    pipe = Pipeline(2, 1, None)
    with pipe:
        rows = fn.external_source(source=[[row.astype(np.int32) for row in b] for b in ROWS])
        pipe.set_outputs(fn.external_source(source=BATCHES), rows)
    return pipe


def assert_sparse(found, rows):
    """`found` has what DALI's has: each element of each sample, in the smallest box around them."""
    expected = {
        (sample, *place): value
        for sample, row in enumerate(rows)
        for place, value in np.ndenumerate(row)
    }
    places = [tuple(place) for place in np.asarray(found.indices).tolist()]
    assert dict(zip(places, np.asarray(found.values).tolist(), strict=True)) == expected
    assert places == sorted(places)
    box = [len(rows), *np.max([row.shape for row in rows], axis=0)]
    assert np.asarray(found.dense_shape).tolist() == box


def test_in_a_graph_an_evaluation_is_a_batch(session):
    with tf.device("/gpu:0"):  # where there is none; the operation is one of the host's
        dense, sparse = DALIIterator()(
            pipeline=pipeline_of_both(),
            shapes=[(2, 3), ()],
            dtypes=[tf.float32, tf.int32],
            sparse=[False, True],
        )
    assert (dense.shape, dense.dtype) == ((2, 3), tf.float32)
    assert isinstance(sparse, tf.SparseTensor)
    for expected, rows in zip(BATCHES, ROWS, strict=True):
        found, places = session.run([dense, sparse])
        assert np.array_equal(found, expected)
        assert_sparse(places, rows)
    with pytest.raises(tf.errors.OutOfRangeError):
        session.run(dense)


def test_in_eager_execution_a_call_is_a_batch():
    """Of one copy of the pipeline, which goes on from call to call and ends with the pipeline."""
    before = set(threading.enumerate())
    pipe, other = pipeline_of_both(), pipeline_of_both()
    for expected, rows in zip(BATCHES, ROWS, strict=True):
        dense, sparse = DALIIteratorWrapper(pipe, sparse=[False, True])
        assert np.array_equal(dense, expected)
        assert_sparse(sparse, rows)
    with pytest.raises(tf.errors.OutOfRangeError, match="no more data"):
        DALIIteratorWrapper(pipe, sparse=[False, True])
    assert np.array_equal(DALIIteratorWrapper(other, sparse=[False, True])[0], BATCHES[0])
    del pipe, other
    gc.collect()
    assert set(threading.enumerate()) <= before


def test_the_raw_operation_has_single_tensors(session):
    tensors = DALIRawIterator()(
        pipeline=pipeline_of_both(),
        sparse=[False, True],
        dtypes=[tf.float32, tf.int64, tf.int32, tf.int64],
        shapes=[(2, 3), (), (), ()],
    )
    assert [t.dtype for t in tensors] == [tf.float32, tf.int64, tf.int32, tf.int64]
    dense, *parts = session.run(tensors)
    assert np.array_equal(dense, BATCHES[0])
    assert_sparse(tf.compat.v1.SparseTensorValue(*parts), ROWS[0])


def test_arguments_of_operations(files, session):
    data = serialize_pipeline(file_pipeline(files, batch_size=7))
    kinds = [tf.uint8, tf.int32]
    for arguments, size in [({}, 7), ({"shapes": [(3, 64), (3,)]}, 3), ({"batch_size": 5}, 5)]:
        _, label = DALIIteratorWrapper(serialized_pipeline=data, dtypes=kinds, **arguments)
        assert session.run(label).ravel().tolist() == list(range(size))
    assert label.shape.rank is None
    more = {"num_threads": 1, "device_id": 0, "exec_separated": True}
    _, label = DALIIteratorWrapper(serialized_pipeline=data, shapes=[(), (7,)], **more)
    assert session.run(label).tolist() == list(range(7))
    pipe = file_pipeline(files)
    for wrong, message in [
        ({"dtypes": kinds[:1]}, r"`dtypes` has 1 elements.* 2 outputs"),
        ({"shapes": [()]}, r"`shapes` has 1 elements.* 2 outputs"),
        ({"sparse": [True] * 3}, "`sparse` has 3 elements"),
        ({"serialized_pipeline": data}, "one of `pipeline` and `serialized_pipeline`, got both"),
    ]:
        with pytest.raises(errors.ArgumentValueError, match=message):
            DALIIteratorWrapper(pipe, **wrong)
    with pytest.raises(errors.ArgumentTypeError, match="`pipeline` is a function"):
        DALIIteratorWrapper(file_pipeline)


def test_errors_of_operations(files, session):
    pipe = file_pipeline(files)
    _, label = DALIIteratorWrapper(pipe, dtypes=[tf.uint8, tf.int64])
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"output_dtypes\[1\]\): int64"):
        session.run(label)


def test_values_of_another_type_of_the_same_size_are_converted(session):
    """One of DALI's tutorials asks for int32 where the pipeline makes float32."""
    pipe = Pipeline(2, 1, None)
    with pipe:
        source = [[np.array([-1.5, 2.5], np.float32), np.array([3, 4], np.float32)]]
        floats = fn.external_source(source=source, cycle="quiet")
        bits = fn.external_source(source=[[np.array([200], np.uint8)] * 2], cycle="quiet")
        pipe.set_outputs(floats, floats, fn.cast(bits, dtype=types.INT8))
    found = DALIIteratorWrapper(pipe, dtypes=[tf.int32, tf.int32, tf.uint8], sparse=[False, True])
    with pytest.warns(UserWarning, match="int32 for output ., which is float32.*DALI") as warned:
        dense, sparse, whole = session.run(found)
    assert len(warned) == 2
    session.run(found)  # without another warning, which would be an error
    assert dense.tolist() == [[-1, 2], [3, 4]]
    assert sparse.values.tolist() == [-1, 2, 3, 4]
    assert whole.tolist() == [[127], [127]]


def test_errors_of_eager_operations(files):
    pipe = file_pipeline(files)
    with pytest.raises(errors.UsageError, match=r"`pipeline = Pipeline\.deserialize"):
        DALIIteratorWrapper(serialized_pipeline=pipe.serialize())
    with pytest.raises(errors.ShapeError, match=r"\[4, 63\]"):
        DALIIteratorWrapper(pipe, shapes=[(4, 63), ()])


def test_a_dataset_in_a_graph(session):
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
