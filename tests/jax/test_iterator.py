"""Iterators without a sharding: one pipeline, or several on one device."""

from __future__ import annotations

import gc

import jax
import numpy as np
import pytest

from headrace import errors, fn, types
from headrace.pipeline import Pipeline
from headrace.plugin.jax import DALIGenericIterator, LastBatchPolicy
from headrace.tensors.pool import HOST_POOL
from tests.jax.pipelines import OUTPUTS, epoch, file_pipeline, labels, source_pipeline

FILL, DROP, PARTIAL = LastBatchPolicy.FILL, LastBatchPolicy.DROP, LastBatchPolicy.PARTIAL


def iterate(pipelines, output_map=OUTPUTS, reader_name="reader", **arguments):
    return DALIGenericIterator(pipelines, output_map, reader_name=reader_name, **arguments)


def address(array):
    return array.addressable_data(0).unsafe_buffer_pointer()


def test_a_step_is_a_dictionary_of_arrays(files, devices):
    step = next(iterate(file_pipeline(files)))
    assert list(step) == OUTPUTS
    assert all(isinstance(array, jax.Array) for array in step.values())
    assert step["data"].shape == (4, 64)
    assert step["data"].dtype == np.uint8
    assert step["label"].shape == (4, 1)
    assert step["label"].dtype == np.int32
    assert step["label"].devices() == {devices[0]}
    assert labels(step["label"]) == [0, 1, 2, 3]
    assert np.array_equal(step["data"], np.arange(4)[:, None] * np.ones((1, 64)))


def test_length(files):
    assert len(iterate(file_pipeline(files, batch_size=1))) == 21
    assert len(iterate(file_pipeline(files, batch_size=4))) == 6
    assert len(iterate(file_pipeline(files, batch_size=4), last_batch_policy=DROP)) == 5


@pytest.mark.parametrize(
    ("policy", "last"), [(FILL, [[20, 0, 1, 2]]), (DROP, []), (PARTIAL, [[20]])]
)
def test_policies(files, policy, last):
    it = iterate(file_pipeline(files), last_batch_policy=policy)
    assert epoch(it) == [list(range(k, k + 4)) for k in range(0, 20, 4)] + last


@pytest.mark.parametrize("policy", list(LastBatchPolicy))
def test_epochs_follow_one_another(files, policy):
    it = iterate(file_pipeline(files, pad_last_batch=True), last_batch_policy=policy)
    first = epoch(it)
    assert epoch(it) == first
    for _ in it:
        break
    assert epoch(it) == first
    next(it := iterate(file_pipeline(files), auto_reset="yes"))
    assert len(epoch(it)) == 5


def test_memory_is_shared_with_the_pipeline(monkeypatch):
    data = np.random.default_rng(0).random((8, 64, 64), np.float32)
    pipe = source_pipeline([data] * 4)
    seen = []
    share = Pipeline.share_outputs

    def spy(self, *args):
        outputs = share(self, *args)
        seen.append(outputs[0].as_array().ctypes.data)
        return outputs

    monkeypatch.setattr(Pipeline, "share_outputs", spy)
    it = DALIGenericIterator(pipe, ["x"])
    array = next(it)["x"]
    assert address(array) == seen[0]
    np.testing.assert_array_equal(array, data)


def test_memory_returns_when_the_array_is_gone():
    data = np.zeros((8, 640, 640), np.float32)
    it = DALIGenericIterator(source_pipeline([data] * 3), ["x"])
    kept = [step["x"] for step in it]
    assert len({address(array) for array in kept}) == 3
    del it
    gc.collect()
    before = HOST_POOL.stats().bytes_in_use
    kept.pop()
    gc.collect()
    assert HOST_POOL.stats().bytes_in_use <= before - data.nbytes
    np.testing.assert_array_equal(kept[0], data)


def test_arrays_outlive_everything(files):
    it = iterate(file_pipeline(files))
    kept = [step["data"] for step in it]
    del it
    gc.collect()
    assert [int(array[0, 0]) for array in kept] == [0, 4, 8, 12, 16, 20]


def test_donation_does_not_touch_the_memory():
    data = np.ones((8, 256), np.float32)
    pipe = source_pipeline([data] * 2)
    add = jax.jit(lambda x: x + 1, donate_argnums=0)
    outputs = [add(step["x"]) for step in DALIGenericIterator(pipe, ["x"])]
    assert all((np.asarray(out) == 2).all() for out in outputs)
    assert (data == 1).all()


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("float16", "float16"),
        ("bool", "bool"),
        ("uint16", "uint16"),
        ("int64", "int32"),
        ("uint64", "uint32"),
        ("float64", "float32"),
    ],
)
def test_types_are_as_everywhere_in_jax(given, expected):
    data = np.ones((4, 3), given)
    array = next(DALIGenericIterator(source_pipeline([data]), ["x"]))["x"]
    assert array.dtype == expected
    np.testing.assert_array_equal(array, data)


def test_wide_types_where_jax_has_them():
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    try:
        for given in ("int64", "uint64", "float64"):
            pipe = source_pipeline([np.ones((4, 3), given)])
            assert next(DALIGenericIterator(pipe, ["x"]))["x"].dtype == given
    finally:
        jax.config.update("jax_enable_x64", before)


@pytest.mark.parametrize("shape", [(0,), (3, 0, 2)])
def test_samples_without_elements(shape, over):
    pipelines = [source_pipeline([np.zeros((8, *shape), np.uint8)] * 2) for _ in range(2)]
    assert next(DALIGenericIterator(pipelines[0], ["x"]))["x"].shape == (8, *shape)
    it = DALIGenericIterator(pipelines[1], ["x"], sharding=over(4))
    assert next(it)["x"].shape == (8, *shape)


def test_enumerations_are_no_arrays():
    pipe = Pipeline(2, 1, None)
    with pipe:
        data = fn.external_source(source=lambda: np.zeros((2, 3), np.uint8))
        pipe.set_outputs(data, types.Constant(types.INTERP_CUBIC))
    with pytest.raises(errors.DataTypeError, match=r"fn.cast"):
        next(DALIGenericIterator(pipe, ["x", "kind"]))


def test_samples_of_different_shapes_are_no_array():
    batches = [[np.zeros((2, 3)), np.zeros((4, 3))]]
    it = DALIGenericIterator(source_pipeline(batches), ["boxes"])
    with pytest.raises(errors.ShapeError, match=r'"boxes".*\(2, 3\), \(4, 3\).*fn.pad'):
        next(it)


def test_shapes_may_change_from_step_to_step():
    batches = [np.zeros((2, 3)), np.zeros((2, 5)), np.zeros((1, 5))]
    it = DALIGenericIterator(source_pipeline(batches, batch_size=2, cycle="raise"), "x")
    for _ in range(2):
        assert [step["x"].shape for step in it] == [(2, 3), (2, 5), (1, 5)]


def test_size(files):
    with pytest.warns(Warning, match="reader_name"):
        it = iterate(file_pipeline(files), reader_name=None, size=7, last_batch_policy=PARTIAL)
    assert len(it) == 2
    assert epoch(it) == [[0, 1, 2, 3], [4, 5, 6]]


def test_bad_samples_are_left_out(files):
    names = [name if k not in (5, 20) else name + ".gone" for k, name in enumerate(files)]
    pipe = Pipeline(4, 2, None, on_bad_sample="skip")
    with pipe:
        pipe.set_outputs(*fn.readers.file(files=names, name="reader", pad_last_batch=True))
    it = iterate(pipe, last_batch_policy=PARTIAL)
    shown = [k for step in epoch(it) for k in step]
    assert sorted(shown) == sorted(set(range(21)) - {5, 20})


def test_several_pipelines_have_an_axis_of_their_own(files):
    pipelines = [file_pipeline(files, 3, k) for k in range(3)]
    it = iterate(pipelines)
    step = next(it)
    assert step["data"].shape == (3, 4, 64)
    assert step["label"][:, :, 0].tolist() == [[0, 1, 2, 3], [7, 8, 9, 10], [14, 15, 16, 17]]
    pipelines = [file_pipeline(files, 3, k) for k in range(3)]
    step = next(iterate(pipelines, pmap_compatible=False))
    assert step["data"].shape == (12, 64)
    assert labels(step["label"]) == [0, 1, 2, 3, 7, 8, 9, 10, 14, 15, 16, 17]


def test_one_pipeline_with_an_axis_for_its_device(files):
    step = next(iterate(file_pipeline(files), pmap_compatible=True))
    assert step["data"].shape == (1, 4, 64)


def test_partial_batches_of_several_pipelines(files):
    pipelines = [file_pipeline(files, 2, k) for k in range(2)]
    it = iterate(pipelines, pmap_compatible=False, last_batch_policy=PARTIAL)
    steps = epoch(it)
    assert [len(step) for step in steps] == [8, 8, 5]
    assert sorted(k for step in steps for k in step) == list(range(21))
    with pytest.raises(errors.ArgumentValueError, match=r"PARTIAL.*axis for the devices"):
        iterate([file_pipeline(files, 2, k) for k in range(2)], last_batch_policy=PARTIAL)
    with pytest.raises(errors.ArgumentValueError, match=r"PARTIAL.*axis for the devices"):
        iterate(file_pipeline(files), pmap_compatible=True, last_batch_policy=PARTIAL)


def test_wrong_arguments(files):
    with pytest.raises(errors.ArgumentValueError, match=r"1 names.*2 outputs.*one name for each"):
        iterate(file_pipeline(files), ["data"])
    with pytest.raises(errors.ArgumentValueError, match=r"3 names.*2 outputs"):
        iterate(file_pipeline(files), ["a", "b", "c"])
    with pytest.raises(errors.ArgumentValueError, match="distinct"):
        iterate(file_pipeline(files), ["a", "a"])
    with pytest.raises(errors.ArgumentValueError, match="`output_map` is empty"):
        iterate(file_pipeline(files), [])
    with pytest.raises(errors.ArgumentTypeError, match=r"`sharding` is 'batch'.*NamedSharding"):
        iterate(file_pipeline(files), sharding="batch")
    with pytest.raises(errors.ArgumentValueError, match="LastBatchPolicy"):
        iterate(file_pipeline(files), last_batch_policy="FILL")
    with pytest.raises(RuntimeError, match="nobody"):
        iterate(file_pipeline(files), reader_name="nobody")


def test_errors_come_with_their_step(files):
    names = [*files[:5], files[5] + ".gone", *files[6:]]
    it = iterate(file_pipeline(names))
    assert labels(next(it)["label"]) == [0, 1, 2, 3]
    with pytest.raises(errors.BadSampleError, match="gone"):
        next(it)
    assert labels(next(it)["label"]) == [8, 9, 10, 11]
