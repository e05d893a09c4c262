"""The decorator: what the decorated function takes, and what it makes of it."""

from __future__ import annotations

import inspect
import re

import jax
import numpy as np
import pytest

from headrace import errors, fn, pipeline_def
from headrace.plugin.jax import (
    DALIGenericIterator,
    data_iterator,
    peekable_data_iterator,
    placement,
)
from tests.jax.pipelines import OUTPUTS, epoch, labels, read


@pytest.fixture
def no_gpu(monkeypatch):
    """JAX as it is where there is no GPU."""
    monkeypatch.setattr(placement, "first_gpu", lambda: None)


def test_decorator(files, no_gpu):
    @data_iterator(output_map=OUTPUTS, reader_name="reader")
    def simple():
        """What it does."""
        return read(files)

    it = simple(batch_size=1)
    assert isinstance(it, DALIGenericIterator)
    assert len(it) == 21
    assert epoch(it) == [[k] for k in range(21)]
    assert simple.__name__ == "simple"
    assert simple.__doc__ == "What it does."


def test_plain_function(files, no_gpu):
    def simple():
        return read(files)

    make = data_iterator(simple, output_map=OUTPUTS, reader_name="reader")
    assert labels(next(make(batch_size=4))["label"]) == [0, 1, 2, 3]
    assert labels(next(data_iterator(simple, OUTPUTS, -1, "reader")(batch_size=2))["label"]) == [
        0,
        1,
    ]


def test_a_pipeline_definition(files, no_gpu):
    @data_iterator(output_map=OUTPUTS, reader_name="reader")
    @pipeline_def(batch_size=4, num_threads=1, seed=3)
    def defined(first):
        return read(files[first:])

    it = defined(2)
    assert labels(next(it)["label"]) == [0, 1, 2, 3]
    assert it._pipes[0].seed == 3
    assert labels(next(defined(first=2, batch_size=2))["label"]) == [0, 1]


def test_arguments_of_both(files, no_gpu):
    @data_iterator(output_map="label", reader_name="reader", auto_reset=True)
    def simple(first, *, count=5, shuffle=False):
        return read(files[first : first + count], random_shuffle=shuffle)[1]

    it = simple(3, count=4, batch_size=2, num_threads=3, seed=7, prefetch_queue_depth=1)
    (pipe,) = it._pipes
    assert (pipe.num_threads, pipe.seed, pipe.device_id, pipe.max_batch_size) == (3, 7, None, 2)
    assert pipe.prefetch_queue_depth == 1
    assert epoch(it) == [[0, 1], [2, 3]]
    assert simple(0, batch_size=2)._pipes[0].num_threads == 4
    same = [epoch(simple(0, shuffle=True, batch_size=2, seed=k)) for k in (1, 1, 2)]
    assert same[0] == same[1] != same[2]
    assert list(inspect.signature(simple).parameters) == ["first", "count", "shuffle"]


def test_a_parameter_for_the_device(files, devices, over):
    seen = []

    @data_iterator(output_map=OUTPUTS, reader_name="reader", sharding=over(4))
    def make(device_id, num_shards, shard_id):
        seen.append((device_id, num_shards, shard_id))
        return read(files, num_shards, shard_id)

    make(batch_size=8)
    assert seen == [(None, 4, k) for k in range(4)]
    seen.clear()
    make(batch_size=8, device_id=None)
    assert seen == [(None, 4, k) for k in range(4)]


def test_the_device_follows_jax(files, monkeypatch):
    wanted = []

    def first_gpu():
        wanted.append(0)

    monkeypatch.setattr(placement, "first_gpu", first_gpu)
    make = data_iterator(lambda: read(files), OUTPUTS, reader_name="reader")
    make(batch_size=2)
    assert wanted == [0]
    make(batch_size=2, device_id=None)
    assert wanted == [0]


def test_the_gpu_that_jax_has(monkeypatch):
    assert placement.first_gpu() is None or jax.devices()[0].platform == "gpu"

    class Gpu:
        platform = "gpu"
        local_hardware_id = 3

    monkeypatch.setattr(jax, "local_devices", lambda backend: [Gpu()])
    assert placement.first_gpu() == 3


def test_threads_are_shared_by_pipelines_on_the_cpu(files, over, monkeypatch):
    make = data_iterator(
        lambda num_shards, shard_id: read(files, num_shards, shard_id),
        OUTPUTS,
        reader_name="reader",
        sharding=over(4),
    )
    for cpus, each in ((2, 1), (8, 2), (64, 4)):
        monkeypatch.setattr(placement, "available_cpus", lambda cpus=cpus: cpus)
        assert {p.num_threads for p in make(batch_size=8)._pipes} == {each}
    assert {p.num_threads for p in make(batch_size=8, num_threads=3)._pipes} == {3}


def test_wrong_calls(files, no_gpu):
    make = data_iterator(lambda: read(files), OUTPUTS, reader_name="reader")
    with pytest.raises(TypeError, match="batch_sise"):
        make(batch_sise=3)
    with pytest.raises(errors.ArgumentValueError, match="batch size must be set"):
        make()
    with pytest.raises(errors.ArgumentTypeError, match="decorates a function, got 3"):
        data_iterator(3, OUTPUTS)
    with pytest.raises(errors.ArgumentValueError, match="`output_map` is empty"):
        data_iterator(lambda: read(files))
    with pytest.raises(errors.UsageError, match="`checkpoints` has 2 elements for 1"):
        make(batch_size=2, checkpoints=[b"", b""])
    with pytest.raises(TypeError, match="variadic"):
        data_iterator(lambda **options: read(files), OUTPUTS)(batch_size=2)


def test_warnings_point_at_the_user(files, no_gpu):
    make = data_iterator(lambda: read(files), OUTPUTS, size=21)
    with pytest.warns(Warning, match="reader_name") as warned:
        make(batch_size=4)
    assert [w.filename for w in warned] == [__file__]


def test_a_batch_on_the_cpu_goes_to_any_device(devices):
    data = np.arange(8, dtype=np.float32).reshape(2, 4)
    make = data_iterator(
        lambda: fn.external_source(source=[data]),
        "x",
        sharding=jax.sharding.SingleDeviceSharding(devices[5]),
    )
    array = next(make(batch_size=2))["x"]
    assert array.devices() == {devices[5]}
    np.testing.assert_array_equal(array, data)


@pytest.mark.parametrize("device_id", [0, "auto"])
def test_without_a_gpu(files, device_id, gpu_is_off):
    """What a program for a GPU gets where it is told to run on the CPU."""

    @data_iterator(output_map=OUTPUTS, reader_name="reader")
    def moving():
        return tuple(output.gpu() for output in read(files))

    with pytest.warns(UserWarning, match="asks for a GPU"):
        batches = moving(batch_size=4, device_id=device_id)
    found = next(batches)["label"]
    assert {device.platform for device in found.devices()} == {"cpu"}
    assert labels(found) == [0, 1, 2, 3]


def test_mistakes_in_a_decorator_show_the_programs_line():
    for decorator in (data_iterator, peekable_data_iterator):
        with pytest.raises(TypeError) as misspelt:
            decorator(output_map=["x"], reader_nam="reader")
        # Python 3.13 and later suggest it themselves.
        words = "".join([str(misspelt.value), *getattr(misspelt.value, "__notes__", ())])
        assert re.search(r"Did you mean ['\"]reader_name['\"]\?", words)
        with pytest.raises(ValueError, match="`output_map` is empty") as empty:
            decorator(lambda: None)
        assert len(empty.traceback) == 1
