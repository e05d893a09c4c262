"""`DALIDataset` as a dataset: its elements, their structure, types and shapes, its epochs."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
import tensorflow as tf

from headrace import Pipeline, errors, fn, types
from headrace.plugin.tf import DALIDataset, LastBatchPolicy
from tests.jax.pipelines import file_pipeline


class Pair(NamedTuple):
    data: Any
    label: Any


def dataset(pipeline, *args, batch_size=4, device_id=None, **arguments):
    return DALIDataset(pipeline, *args, batch_size=batch_size, device_id=device_id, **arguments)


def numbers(elements):
    """The labels in each batch."""
    return [np.asarray(label).ravel().tolist() for _, label in elements]


def pipeline_of(*outputs, batch_size=2, **arguments):
    """A pipeline that returns what functions define."""
    pipe = Pipeline(batch_size, 1, None, **arguments)
    with pipe:
        pipe.set_outputs(*(output() for output in outputs))
    return pipe


def batches(*arrays, **arguments):
    """The definition of a source of these batches."""
    return lambda: fn.external_source(source=list(arrays), **arguments)


def test_it_is_a_dataset_of_tuples_of_batches(files):
    ds = dataset(file_pipeline(files))
    assert isinstance(ds, tf.data.Dataset)
    assert ds.element_spec == (
        tf.TensorSpec([None, None], tf.uint8),
        tf.TensorSpec([None, None], tf.int32),
    )
    assert ds.cardinality() == tf.data.INFINITE_CARDINALITY
    elements = list(ds.take(7))
    assert numbers(elements)[:2] == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert numbers(elements)[5:] == [[20, 0, 1, 2], [3, 4, 5, 6]]
    for data, label in elements:
        assert np.array_equal(data, np.asarray(label) * np.ones((1, 64)))


def test_each_iterator_begins_at_the_beginning_and_the_pipeline_is_left_alone(files):
    pipe = file_pipeline(files)
    ds = dataset(pipe)
    one, other = iter(ds), iter(ds)
    next(one)
    assert numbers([next(one), next(other)]) == [[4, 5, 6, 7], [0, 1, 2, 3]]
    assert numbers(ds.take(1)) == numbers(ds.take(1)) == [[0, 1, 2, 3]]
    assert np.asarray(pipe.run()[1]).ravel().tolist() == [0, 1, 2, 3]


def test_arguments_are_those_of_the_dataset(files):
    pipe = file_pipeline(files, batch_size=7)
    assert numbers(DALIDataset(pipe, device_id=None).take(2)) == [[0], [1]]
    assert numbers(dataset(pipe, batch_size=3, num_threads=1, exec_separated=True).take(1)) == [
        [0, 1, 2]
    ]
    assert numbers(DALIDataset(pipe).take(1)) == [[0]]  # nothing is on a GPU
    with pytest.raises(errors.MisusedArgumentError, match="exec_dynamic"):
        dataset(pipe, exec_separated=True, exec_dynamic=True)
    with pytest.raises(errors.ArgumentValueError, match="batch size"):
        dataset(pipe, batch_size=0)
    with pytest.raises(errors.ArgumentTypeError, match="`pipeline` is a function"):
        DALIDataset(file_pipeline)


def test_an_epoch_of_a_source_ends_and_begins_anew():
    pipe = pipeline_of(batches(*np.arange(6).reshape(3, 2)), lambda: np.int32(7))
    ds = dataset(pipe, batch_size=2)
    assert ds.cardinality() == tf.data.UNKNOWN_CARDINALITY
    for _ in range(2):
        assert [d.numpy().tolist() for d, _ in ds] == [[0, 1], [2, 3], [4, 5]]
    assert len(list(ds.repeat(3))) == 9
    assert [d.numpy().tolist() for d, _ in ds.skip(2).repeat(2)] == [[4, 5], [4, 5]]


@pytest.mark.parametrize(
    ("policy", "last"),
    [
        (LastBatchPolicy.FILL, [20, 20, 20, 20]),
        (LastBatchPolicy.DROP, None),
        (LastBatchPolicy.PARTIAL, [20]),
    ],
)
def test_epochs_of_a_reader(files, policy, last):
    pipe = file_pipeline(files, pad_last_batch=True)
    ds = dataset(pipe, reader_name="reader", last_batch_policy=policy)
    full = [list(range(k, k + 4)) for k in range(0, 20, 4)]
    for _ in range(2):
        assert numbers(ds) == full + ([] if last is None else [last])
    assert ds.cardinality() == len(numbers(ds))


def test_epochs_of_different_lengths(files):
    """What was read beyond the end of an epoch counts as part of the next one."""
    ds = dataset(file_pipeline(files), reader_name="reader")
    assert ds.cardinality() == tf.data.UNKNOWN_CARDINALITY
    assert [len(numbers(ds)) for _ in range(3)] == [6, 5, 5]


def test_the_next_iterator_goes_on_with_the_next_epoch_of_a_reader(files):
    pipe = file_pipeline(files, seed=5, batch_size=21, random_shuffle=True)
    ds = dataset(pipe, batch_size=21, reader_name="reader")
    epochs = [numbers(ds)[0] for _ in range(3)]
    assert all(sorted(epoch) == list(range(21)) for epoch in epochs)
    assert epochs[0] != epochs[1] != epochs[2]
    again = dataset(pipe, batch_size=21, reader_name="reader")
    assert numbers(again.repeat(2)) == epochs[:2]
    assert numbers(again.take(1)) == epochs[2:]


def test_transformations_and_options(files):
    options = tf.data.Options()
    options.deterministic = True
    options.threading.private_threadpool_size = 1
    ds = dataset(file_pipeline(files)).with_options(options).prefetch(3)
    doubled = ds.map(lambda data, label: label[:, 0] * 2, num_parallel_calls=2).unbatch().take(5)
    assert [int(n) for n in doubled] == [0, 2, 4, 6, 8]
    zipped = tf.data.Dataset.zip((ds, tf.data.Dataset.range(2)))
    assert [int(n) for _, n in zipped] == [0, 1]


def test_element_types():
    for dtype in (np.uint8, np.int64, np.float16, np.float32, np.float64, np.bool_):
        array = np.arange(6).reshape(2, 3).astype(dtype)
        ((found,),) = dataset(pipeline_of(batches(array)), batch_size=2)
        assert found.dtype == dtype
        assert np.array_equal(found, array)


def test_structures(files):
    pipe = file_pipeline(files)
    unsigned, number = tf.uint8, tf.int32
    one = pipeline_of(batches(np.zeros((2, 3), np.float32)))
    assert dataset(one, tf.float32).element_spec == (tf.TensorSpec([None, None], tf.float32),)
    named = dataset(pipe, {"z": None, "a": number})
    assert next(iter(named))["z"].dtype == unsigned  # the first output is the first that is written
    nested = dataset(pipe, ({"data": unsigned}, (number,)), ({"data": (4, 64)}, ((4, None),)))
    assert nested.element_spec == (
        {"data": tf.TensorSpec([4, 64], unsigned)},
        (tf.TensorSpec([4, None], number),),
    )
    element = next(iter(dataset(pipe, Pair(None, None))))
    assert isinstance(element, Pair)
    assert element.label.dtype == number


def test_wrong_structures(files):
    pipe = file_pipeline(files)
    for wrong, message in [
        ([tf.uint8, tf.int32], "single tf.DType value or a tuple"),
        ((tf.uint8, "int32"), "single tf.DType value or a tuple"),
    ]:
        with pytest.raises(TypeError, match=message):
            dataset(pipe, wrong)
    with pytest.raises(errors.ArgumentValueError, match=r"has 1 elements.*2 outputs"):
        dataset(pipe, tf.uint8)
    types_ = (tf.uint8, tf.int32)
    for shapes in [((4, 64),), {"data": (4, 64)}, (4, 64, 1)]:
        with pytest.raises(errors.HeadraceError, match="`output_shapes`"):
            dataset(pipe, types_, shapes)
    with pytest.raises(errors.ArgumentTypeError, match="`output_shapes` has 'HWC'"):
        dataset(pipe, types_, ("HWC", None))


def test_deprecated_names(files):
    pipe = file_pipeline(files)
    with pytest.warns(Warning, match="Use of argument `(dtypes|shapes)` is deprecated") as caught:
        ds = dataset(pipe, dtypes=[tf.uint8, tf.int32], shapes=[(4, 64), (4, 1)])
    assert [w.filename for w in caught] == [__file__] * 2
    assert ds.element_spec[1] == tf.TensorSpec([4, 1], tf.int32)
    with pytest.raises(ValueError, match="Both arguments were provided"):
        dataset(pipe, tf.uint8, dtypes=tf.uint8)


def test_axes_of_extent_1_may_be_left_out(files):
    pipe = file_pipeline(files)
    types_ = (tf.uint8, tf.int32)
    _, label = next(iter(dataset(pipe, types_, ((4, 64), (4,)))))
    assert label.shape == (4,)
    data, label = next(iter(dataset(pipe, types_, ((None,), ()), batch_size=1)))
    assert (data.shape, label.shape) == ((64,), ())
    image = np.zeros((2, 1, 1, 5), np.uint8)
    for shape, found in [((2, 5), (2, 5)), ((2, 1, None), None), ((2, 5, 1), None), ((2, 4), None)]:
        ds = dataset(pipeline_of(batches(image)), tf.uint8, shape, batch_size=2)
        if found is not None:
            assert next(iter(ds))[0].shape == found
            continue
        with pytest.raises(tf.errors.OpError, match=r"output_shapes\[0\].*got from the pipeline"):
            next(iter(ds))


def test_wrong_types_and_shapes_show_at_the_first_batch(files):
    pipe = file_pipeline(files)
    for types_, shapes, message in [
        ((tf.int8, tf.int32), None, r"DataTypeError.*output_dtypes\[0\]\): int8, got.*uint8"),
        ((tf.uint8, tf.int32), ((4, 63), None), r"ShapeError.*output_shapes\[0\]"),
        ((tf.uint8, tf.int32), ((5, 64), None), r"ShapeError.*output_shapes\[0\]"),
    ]:
        with pytest.raises(tf.errors.InvalidArgumentError, match=message):
            next(iter(dataset(pipe, types_, shapes)))


RAGGED = [np.arange(2 * (k + 1) * 3).reshape(2, k + 1, 3).astype(np.int32) for k in range(3)]


def test_samples_of_different_shapes():
    pipe = pipeline_of(batches(RAGGED), batch_size=3)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"index '0'.*not uniform.*fn.pad"):
        next(iter(dataset(pipe, batch_size=3)))
    for shape, rank in [([None, None, None, 3], 2), ([None, None, None, None], 3)]:
        spec = tf.RaggedTensorSpec(shape, tf.int32, ragged_rank=rank)
        ds = dataset(pipe, None, spec, batch_size=3)
        assert ds.element_spec == (spec,)
        ((found,),) = ds
        assert found.to_list() == [sample.tolist() for sample in RAGGED]
        assert found.ragged_rank == rank
    with pytest.raises(errors.ArgumentValueError, match="same type in both"):
        dataset(pipe, tf.float32, (spec,), batch_size=3)
    for shape, rank in [([None, None, None, 4], 2), ([None, None], 1)]:
        spec = tf.RaggedTensorSpec(shape, tf.int32, ragged_rank=rank)
        with pytest.raises(tf.errors.InvalidArgumentError, match="Sample 0 of output `0`"):
            next(iter(dataset(pipe, None, spec, batch_size=3)))


def test_batches_of_different_shapes_and_sizes():
    arrays = [np.full((n, n + 1), n, np.float32) for n in (3, 1, 2)]
    found = [
        x.numpy() for (x,) in dataset(pipeline_of(batches(*arrays), batch_size=3), batch_size=3)
    ]
    assert all(np.array_equal(a, b) for a, b in zip(found, arrays, strict=True))


def addresses(arrays):
    return [np.asarray(memoryview(a)).ctypes.data for a in arrays]


def test_batches_are_not_copied_and_kept_ones_stay_as_they_are():
    """An image of 64 KiB a sample, in memory of the pool; more batches than it works on ahead."""
    made = []
    pipe = Pipeline(2, 1, None)
    with pipe:
        number = fn.external_source(source=[np.full((2, 1), n, np.int32) for n in range(12)])
        pipe.set_outputs(fn.zeros(shape=(256, 256), dtype=types.INT32) + number)
    ds = dataset(pipe, tf.int32, ((2, 256, 256),), batch_size=2)
    stepper = ds._stepper
    step = stepper._step

    def watched(token):
        found = step(token)
        made.extend(found[2:])
        return found

    stepper._step = watched
    kept = [x for (x,) in ds]
    assert len(kept) == 12
    assert set(addresses(kept)) <= {a.ctypes.data for a in made}
    assert len(set(addresses(kept))) == 12
    assert all(address % 64 == 0 for address in addresses(kept))
    assert [np.unique(x).tolist() for x in kept] == [[n] for n in range(12)]


def test_memory_that_is_not_aligned_is_copied():
    memory = np.zeros(3 * 64 + 4, np.uint8)
    begin = -memory.ctypes.data % 64 + 4
    array = memory[begin : begin + 128].reshape(2, 64)
    array[:] = 3
    pipe = pipeline_of(batches(array, no_copy=True))
    ((found,),) = dataset(pipe, batch_size=2).map(lambda x: (x + 1,))
    assert np.unique(found).tolist() == [4]
    ((found,),) = dataset(pipe, batch_size=2)
    assert addresses([found])[0] % 64 == 0
    assert np.unique(array).tolist() == [3]


def test_tensorflow_does_not_write_into_shared_memory():
    """Both outputs are one batch, and an operation may reuse the memory of its input."""
    pipe = Pipeline(2, 1, None)
    with pipe:
        same = fn.external_source(source=[np.ones((2, 1024), np.float32)] * 4)
        pipe.set_outputs(same, same)
    for a, b in dataset(pipe, batch_size=2).map(lambda a, b: (tf.nn.relu(a * 2) + 1, b)):
        assert np.unique(a).tolist() == [3]
        assert np.unique(b).tolist() == [1]


def test_fit(files):
    pipe = file_pipeline(files, pad_last_batch=True, seed=1, random_shuffle=True)
    ds = dataset(pipe, reader_name="reader").map(
        lambda data, label: (tf.cast(data, tf.float32) / 20, tf.cast(label, tf.float32))
    )
    model = tf.keras.Sequential([tf.keras.Input([64]), tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    history = model.fit(ds, epochs=3, shuffle=False, verbose=0)
    assert len(history.history["loss"]) == 3
    assert np.isfinite(history.history["loss"]).all()
    endless = dataset(file_pipeline(files)).map(lambda d, n: (tf.cast(d, tf.float32), n))
    model.fit(endless, steps_per_epoch=2, epochs=2, shuffle=False, verbose=0)


def test_inputs_are_refused(files):
    pipe = pipeline_of(lambda: fn.external_source(name="images"))
    with pytest.raises(ValueError, match=r"images.*DALIDatasetWithInputs"):
        DALIDataset(pipe)
    with pytest.raises(TypeError, match="input_datasets"):
        DALIDataset(pipe, input_datasets={})


@pytest.mark.parametrize("device_id", [0, "auto"])
def test_without_a_gpu(files, device_id, gpu_is_off):
    """What a program for a GPU gets where it is told to run on the CPU."""
    pipe = pipeline_of(
        lambda: fn.cast(fn.external_source(source=[np.ones((2, 3))]).gpu(), dtype=types.FLOAT)
    )
    with pytest.warns(UserWarning, match="asks for a GPU"):
        ((batch,),) = DALIDataset(pipe, tf.float32, batch_size=2, device_id=device_id)
    np.testing.assert_array_equal(batch, np.ones((2, 3)))
