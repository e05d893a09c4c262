"""Global arrays over several devices: which samples go where, and that none is lost."""

from __future__ import annotations

import contextlib
import warnings
import weakref

import jax
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding, PartitionSpec, SingleDeviceSharding

from headrace import errors, fn
from headrace.pipeline import Pipeline
from headrace.plugin.jax import DALIGenericIterator, LastBatchPolicy, data_iterator
from tests.jax.pipelines import OUTPUTS, epoch, file_pipeline, labels, read, source_pipeline

FILL, DROP, PARTIAL = LastBatchPolicy.FILL, LastBatchPolicy.DROP, LastBatchPolicy.PARTIAL


def sharded(files, sharding, batch_size=8, *, seed=None, reader=None, **arguments):
    @data_iterator(output_map=OUTPUTS, reader_name="reader", sharding=sharding, **arguments)
    def make(num_shards, shard_id):
        return read(files, num_shards, shard_id, **(reader or {}))

    return make(batch_size=batch_size, seed=seed)


def addresses(array):
    return [shard.data.unsafe_buffer_pointer() for shard in array.addressable_shards]


def per_device(array):
    return {shard.device.id: labels(shard.data) for shard in array.addressable_shards}


def test_one_shard_for_each_device(files, over):
    sharding = over(8)
    step = next(sharded(files, sharding, 16))
    assert step["data"].shape == (16, 64)
    assert step["data"].sharding == sharding
    assert step["label"].sharding == sharding
    starts = [21 * k // 8 for k in range(8)]
    assert per_device(step["label"]) == {k: [starts[k], starts[k] + 1] for k in range(8)}


@pytest.mark.sweep
@pytest.mark.parametrize("split", [False, True])
@pytest.mark.parametrize("policy", list(LastBatchPolicy))
@pytest.mark.parametrize("pad", [False, True])
def test_samples_of_an_epoch(files, over, policy, pad, split):
    """The same samples for 1, 2 and 8 devices, as the policy says."""
    for count in (1, 2, 8):
        it = sharded(
            files,
            over(count),
            last_batch_policy=policy,
            split_batches=split,
            reader={"pad_last_batch": pad},
        )
        steps = epoch(it)
        shown = [k for step in steps for k in step]
        assert len(it) == len(steps)
        if policy is PARTIAL:
            assert sorted(shown) == list(range(21))
        elif policy is FILL:
            assert set(shown) == set(range(21))
            assert len(shown) == 24
        else:
            assert len(set(shown)) == len(shown) == 16


@pytest.mark.sweep
@pytest.mark.parametrize("policy", [FILL, PARTIAL])
@pytest.mark.parametrize("size", [8, 9, 15, 16, 17, 20, 21])
def test_sizes_that_do_not_divide(files, over, size, policy):
    for count in (2, 8):
        it = sharded(
            files[:size],
            over(count),
            last_batch_policy=policy,
            reader={"pad_last_batch": True, "random_shuffle": True},
            seed=3,
        )
        for _ in range(3):
            shown = [k for step in epoch(it) for k in step]
            if policy is PARTIAL:
                assert sorted(shown) == list(range(size))
            assert set(shown) == set(range(size))


def test_the_last_rows_are_shared_out_if_they_go_up(files, over):
    steps = list(sharded(files[:20], over(2), last_batch_policy=PARTIAL))
    assert [len(step["label"]) for step in steps] == [8, 8, 4]
    assert steps[2]["label"].sharding == over(2)
    steps = list(sharded(files[:18], over(4), last_batch_policy=PARTIAL))
    assert [len(step["label"]) for step in steps] == [8, 8, 2]
    last = steps[2]["data"]
    assert last.is_fully_replicated
    assert last.sharding.device_set == over(4).device_set
    total = jax.jit(lambda x: x.sum(axis=0))(last)  # as usable as any other
    assert int(total[0]) == sum(k for k in range(18)) - sum(
        k for step in steps[:2] for k in labels(step["label"])
    )


def test_split_batches_are_the_same_for_any_number_of_devices(files, over):
    options = {"split_batches": True, "reader": {"random_shuffle": True}, "seed": 5}
    expected = epoch(sharded(files, over(1), **options))
    for count in (2, 4, 8):
        assert epoch(sharded(files, over(count), **options)) == expected


def test_a_split_batch_is_not_copied(over):
    data = np.random.default_rng(0).random((8, 16, 16), np.float32)
    it = DALIGenericIterator(source_pipeline([data]), ["x"], sharding=over(8))
    array = next(it)["x"]
    first = addresses(array)[0]
    assert addresses(array) == [first + k * data.nbytes // 8 for k in range(8)]
    np.testing.assert_array_equal(array, data)


def test_shards_are_not_copied(over, monkeypatch):
    data = np.zeros((2, 16, 16), np.float32)
    pipelines = [source_pipeline([data + k]) for k in range(4)]
    seen = {}
    share = Pipeline.share_outputs

    def spy(self, *args):
        outputs = share(self, *args)
        seen[id(self)] = outputs[0].as_array().ctypes.data
        return outputs

    monkeypatch.setattr(Pipeline, "share_outputs", spy)
    with pytest.warns(Warning, match="reader_name"):
        it = DALIGenericIterator(pipelines, ["x"], size=8, sharding=over(4))
    array = next(it)["x"]
    assert addresses(array) == [seen[id(pipe)] for pipe in pipelines]
    assert array.shape == (8, 16, 16)


class TestSeveralAxes:
    @pytest.fixture
    def mesh(self, devices):
        return Mesh(np.array(devices).reshape(4, 2), ("batch", "model"))

    def test_copies_along_other_axes(self, files, mesh):
        sharding = NamedSharding(mesh, PartitionSpec("batch"))
        it = sharded(files, sharding, 8)
        step = next(it)
        assert step["label"].sharding == sharding
        assert len(it._pipes) == 4
        shown = per_device(step["label"])
        assert [shown[k] for k in range(0, 8, 2)] == [shown[k] for k in range(1, 8, 2)]
        places = addresses(step["data"])
        assert places[0::2] == places[1::2], "the copies share their memory"

    def test_the_inner_axis(self, files, mesh):
        step = next(sharded(files, NamedSharding(mesh, PartitionSpec("model")), 8))
        assert step["label"].sharding.spec == PartitionSpec("model")
        assert per_device(step["label"])[0] == per_device(step["label"])[6] == [0, 1, 2, 3]
        assert per_device(step["label"])[1] == [10, 11, 12, 13]

    def test_both_axes(self, files, mesh):
        it = sharded(files, NamedSharding(mesh, PartitionSpec(("batch", "model"), None)), 8)
        assert len(it._pipes) == 8
        assert sorted(k for step in epoch(it) for k in step if k < 21)[:21]

    def test_no_axis(self, files, mesh):
        it = sharded(files, NamedSharding(mesh, PartitionSpec()), 8)
        step = next(it)
        assert len(it._pipes) == 1
        assert step["data"].is_fully_replicated
        assert labels(step["label"]) == list(range(8))

    def test_one_for_each_output(self, files, mesh):
        shardings = {
            "data": NamedSharding(mesh, PartitionSpec(("batch", "model"))),
            "label": NamedSharding(mesh, PartitionSpec()),
        }
        for split in (False, True):
            step = next(sharded(files, shardings, 8, split_batches=split))
            assert {k: v.sharding for k, v in step.items()} == shardings
            assert np.array_equal(step["data"][:, 0], step["label"][:, 0])

    def test_coarser_and_crosswise(self, files, mesh):
        shardings = {
            "data": NamedSharding(mesh, PartitionSpec("batch")),
            "label": NamedSharding(mesh, PartitionSpec("model")),
        }
        for policy in LastBatchPolicy:
            for step in sharded(files, shardings, 8, last_batch_policy=policy):
                if len(step["data"]) == 8:
                    assert {k: v.sharding for k, v in step.items()} == shardings
                assert np.array_equal(step["data"][:, 0], step["label"][:, 0])

    def test_other_order_of_devices(self, files, devices):
        mesh = Mesh(np.array(devices)[::-1], ("batch",))
        sharding = NamedSharding(mesh, PartitionSpec("batch"))
        it = sharded(files, sharding, 8, last_batch_policy=DROP)
        step = next(it)
        assert labels(step["label"]) == [21 * k // 8 for k in range(8)]
        assert per_device(step["label"])[7] == [0]
        assert len(epoch(it)) == 1
        assert len(epoch(it)) == 2


@pytest.mark.parametrize("current", [False, True])
def test_explicit_axes(files, devices, current):
    """Meshes whose axes are a part of the types of arrays, as `jax.make_mesh` makes them."""
    kinds = getattr(jax.sharding, "AxisType", None)
    if not hasattr(kinds, "Explicit") or not hasattr(jax, "set_mesh"):
        pytest.skip("this JAX has no explicit axes yet")
    mesh = Mesh(
        np.array(devices).reshape(4, 2), ("batch", "model"), axis_types=(kinds.Explicit,) * 2
    )
    shardings = {
        "data": NamedSharding(mesh, PartitionSpec("batch")),
        "label": NamedSharding(mesh, PartitionSpec(("batch", "model"))),
    }
    with jax.set_mesh(mesh) if current else contextlib.nullcontext():
        for split in (False, True):
            it = sharded(files, shardings, 8, split_batches=split, last_batch_policy=PARTIAL)
            shown = []
            for step in it:
                assert jax.jit(lambda x: x * 2)(step["data"]).shape == step["data"].shape
                shown += labels(step["label"])
            assert sorted(shown) == list(range(21))


def test_nothing_is_left_of_an_iterator(files, over):
    it = sharded(files, over(8))
    next(it)
    gone = weakref.ref(it), weakref.ref(it._pipes[0])
    del it
    assert [ref() for ref in gone] == [None, None], "without the garbage collector"


def test_single_device_sharding(files, devices):
    sharding = SingleDeviceSharding(devices[3])
    step = next(sharded(files, sharding, 8))
    assert step["data"].devices() == {devices[3]}
    assert labels(step["label"]) == list(range(8))


def test_positional_sharding(files, devices):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # as of 0.6
        kind = getattr(jax.sharding, "PositionalSharding", None)
    if kind is None:
        pytest.skip("this JAX has none any more")
    sharding = kind(devices)
    for given in (sharding, sharding.reshape(8, 1)):
        step = next(sharded(files, given, 8))
        assert step["data"].sharding.is_equivalent_to(sharding.reshape(8, 1), 2)
        assert labels(step["label"]) == [21 * k // 8 for k in range(8)]
    with pytest.raises(errors.ArgumentValueError, match="cuts axis 1"):
        sharded(files, sharding.reshape(4, 2), 8)


def test_a_memory_kind_is_kept(files, devices):
    mesh = Mesh(np.array(devices[:2]), ("batch",))
    kind = devices[0].addressable_memories()[-1].kind
    sharding = NamedSharding(mesh, PartitionSpec("batch"), memory_kind=kind)
    step = next(sharded(files, sharding, 8))
    assert step["data"].sharding.memory_kind == kind


@pytest.mark.parametrize("split", [False, True])
def test_devices_have_an_axis(files, devices, split):
    @data_iterator(
        output_map=OUTPUTS, reader_name="reader", devices=devices[:4], split_batches=split
    )
    def make(num_shards, shard_id):
        return read(files, num_shards, shard_id)

    it = make(batch_size=8)
    step = next(it)
    assert step["data"].shape == (4, 2, 64)
    assert [shard.device for shard in step["data"].addressable_shards] == devices[:4]
    expected = list(range(8)) if split else [0, 1, 5, 6, 10, 11, 15, 16]
    assert labels(step["label"]) == expected
    with jax.default_device(devices[0]):
        doubled = jax.pmap(lambda x: x * 2, devices=devices[:4])(step["label"])
    assert labels(doubled) == [2 * k for k in expected]


def test_pmap_compatible(files, devices, over):
    step = next(sharded(files, over(4), 8, pmap_compatible=True))
    assert step["data"].shape == (4, 2, 64)
    assert step["data"].sharding == over(4)

    @data_iterator(
        output_map=OUTPUTS, reader_name="reader", devices=devices[:4], pmap_compatible=False
    )
    def make(num_shards, shard_id):
        return read(files, num_shards, shard_id)

    step = next(make(batch_size=8))
    assert step["data"].shape == (8, 64)
    assert len(step["data"].addressable_shards) == 4


def test_computing_on_all_devices(files, over):
    sharding = over(8)
    mean = jax.jit(lambda x: x.mean(), in_shardings=sharding)
    for step in sharded(files, sharding, 16, last_batch_policy=DROP):
        assert float(mean(step["label"])) == np.mean(labels(step["label"]))


def test_lists_of_pipelines(files, over):
    pipelines = [file_pipeline(files, 4, k, batch_size=2) for k in range(4)]
    it = DALIGenericIterator(pipelines, OUTPUTS, reader_name="reader", sharding=over(4))
    assert next(it)["label"].sharding == over(4)


def test_one_pipeline_is_split(files, over):
    it = DALIGenericIterator(
        file_pipeline(files, batch_size=8),
        OUTPUTS,
        reader_name="reader",
        sharding=over(4),
        last_batch_policy=PARTIAL,
    )
    assert epoch(it) == [list(range(8)), list(range(8, 16)), list(range(16, 21))]


def test_a_source_that_ends_with_a_short_batch(over):
    batches = [np.arange(8), np.arange(8, 12), np.arange(12, 15)]
    pipe = source_pipeline(batches, batch_size=8, cycle="raise")
    it = DALIGenericIterator(pipe, ["x"], sharding=over(4))
    for _ in range(2):
        assert [labels(step["x"]) for step in it] == [b.tolist() for b in batches]


def test_scalars(over):
    pipe = Pipeline(8, 1, None)
    with pipe:
        pipe.set_outputs(fn.external_source(source=[np.arange(8, dtype=np.int32)]))
    array = next(DALIGenericIterator(pipe, ["x"], sharding=over(8)))["x"]
    assert array.shape == (8,)
    assert labels(array) == list(range(8))


class TestErrors:
    def test_indivisible_batch(self, files, over):
        with pytest.raises(errors.ArgumentValueError, match=r"`batch_size`=12.*8 parts.*as 8"):
            sharded(files, over(8), 12)
        with pytest.raises(errors.ArgumentValueError, match=r"batch size must be set.*multiple"):
            sharded(files, over(8), None)
        with pytest.raises(errors.ArgumentValueError, match=r"batch size 6.*not divisible.*4"):
            DALIGenericIterator(file_pipeline(files, batch_size=6), OUTPUTS, sharding=over(4))

    def test_other_axes(self, files, over):
        sharding = over(2, None, "batch")
        with pytest.raises(errors.ArgumentValueError, match=r"cuts axis 1 by 'batch'.*device_put"):
            sharded(files, sharding)
        with pytest.raises(errors.ArgumentValueError, match=r"cuts axis 1"):
            DALIGenericIterator(file_pipeline(files), OUTPUTS, sharding=sharding)

    def test_names_of_outputs(self, files, over):
        make = data_iterator(
            lambda num_shards, shard_id: read(files, num_shards, shard_id),
            ["x"],
            sharding=over(2),
            reader_name="reader",
        )
        with pytest.raises(errors.ArgumentValueError, match=r"1 names.*2 outputs"):
            make(batch_size=8)
        with pytest.raises(errors.ArgumentValueError, match=r"keys \['data'\].*\['data', 'label'"):
            sharded(files, {"data": over(2)})

    def test_devices_of_outputs_differ(self, files, over):
        with pytest.raises(errors.ArgumentValueError, match="other devices"):
            sharded(files, {"data": over(2), "label": over(4)})

    def test_no_parameters_for_shards(self, files, over):
        make = data_iterator(lambda: read(files), OUTPUTS, sharding=over(4))
        with pytest.raises(
            errors.ArgumentValueError, match=r"no parameter `num_shards` and `shard_id`.*split_bat"
        ):
            make(batch_size=8)
        make = data_iterator(lambda num_shards: read(files), OUTPUTS, sharding=over(4))
        with pytest.raises(errors.ArgumentValueError, match="no parameter `shard_id`"):
            make(batch_size=8)
        make = data_iterator(lambda: read(files), OUTPUTS, sharding=over(1))
        assert labels(next(make(batch_size=8))["label"]) == list(range(8))

    def test_numbers_of_pipelines(self, files, over):
        pipelines = [file_pipeline(files, 2, k) for k in range(2)]
        with pytest.raises(errors.ArgumentValueError, match=r"4 parts.*are 2 pipelines"):
            DALIGenericIterator(pipelines, OUTPUTS, reader_name="reader", sharding=over(4))

    def test_what_excludes_each_other(self, files, over, devices):
        with pytest.raises(errors.ArgumentValueError, match="`sharding` and `devices`"):
            data_iterator(output_map=OUTPUTS, sharding=over(2), devices=devices)
        with pytest.raises(errors.ArgumentTypeError, match="`devices`"):
            data_iterator(output_map=OUTPUTS, devices=["cpu"])
        with pytest.raises(errors.ArgumentValueError, match="`devices` is empty"):
            data_iterator(output_map=OUTPUTS, devices=[])
        with pytest.raises(errors.ArgumentValueError, match="`split_batches` needs"):
            data_iterator(output_map=OUTPUTS, split_batches=True)
        make = data_iterator(lambda num_shards, shard_id: read(files), OUTPUTS, sharding=over(2))
        with pytest.raises(errors.ArgumentValueError, match="`device_id` is 0"):
            make(batch_size=8, device_id=0)
        with pytest.raises(errors.ArgumentValueError, match="`shard_id` follows"):
            make(batch_size=8, shard_id=0)

    def test_partial_with_devices(self, devices):
        make = data_iterator(
            lambda num_shards, shard_id: fn.external_source(source=[np.zeros(8)]),
            ["x"],
            devices=devices,
            last_batch_policy=PARTIAL,
            size=8,
        )
        with pytest.raises(errors.ArgumentValueError, match=r"PARTIAL.*`sharding` in place"):
            make(batch_size=8)

    def test_shapes_of_shards(self, over):
        pipelines = [source_pipeline([np.zeros((2, 3 + k))]) for k in range(2)]
        with pytest.warns(Warning, match="reader_name"):
            it = DALIGenericIterator(pipelines, ["x"], size=4, sharding=over(2))
        with pytest.raises(errors.ShapeError, match=r'"x".*\(2, 3\), \(2, 4\).*fn.resize'):
            next(it)
