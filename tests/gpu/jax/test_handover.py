"""JAX on a real GPU reads the engine's memory: once it is written, before it is used anew."""

from __future__ import annotations

import functools
import gc

import numpy as np
import pytest

from headrace import Pipeline, fn, types

jax = pytest.importorskip("jax")

import jax.numpy as jnp  # noqa: E402 - where there is JAX
from jax.sharding import Mesh, NamedSharding, PartitionSpec, SingleDeviceSharding  # noqa: E402

from headrace.plugin.jax import DALIGenericIterator, LastBatchPolicy, data_iterator  # noqa: E402
from headrace.plugin.jax.fn import jax_function  # noqa: E402

pytestmark = pytest.mark.gpu

SHAPE = (256, 256, 3)
BATCH = 8
NAMES = ["image", "real"]
_NOT_CUT = PartitionSpec()


def gpus():
    try:
        return jax.local_devices(backend="gpu")
    except RuntimeError:
        return []


@pytest.fixture(autouse=True)
def _real(gpu_runtime):
    if not gpus():
        pytest.skip("JAX has no GPU")


@pytest.fixture(scope="module")
def slow():
    """Keeps the GPU busy for so many times 20 milliseconds; the result tells when it is done."""
    matrix = jnp.eye(8192, dtype=jnp.float32)

    @functools.partial(jax.jit, static_argnums=0)
    def work(times):
        # Not a loop of JAX's: the host waits for each step of those.
        found = matrix
        for _ in range(times):
            found = jnp.dot(found, matrix, precision="highest")
        return found[0, 0]

    for times in (1, 2, 50):
        work(times).block_until_ready()
    return work


def batch(k):
    """Batch number `k`: its samples hold nothing but numbers that tell which they are."""
    first = k * BATCH % 200
    return np.stack([np.full(SHAPE, first + i, np.uint8) for i in range(BATCH)])


def pipeline(*, depth=2, device_id=0, count=None, offset=0):
    def source(k):
        if count is not None and k >= count:
            raise StopIteration
        return batch(k + offset)

    pipe = Pipeline(BATCH, 2, device_id, prefetch_queue_depth=depth)
    with pipe:
        images = fn.external_source(source=source, layout="HWC").gpu()
        pipe.set_outputs(images, fn.cast(images, dtype=types.FLOAT))
    return pipe


def iterator(**arguments):
    return DALIGenericIterator(pipeline(**arguments), NAMES)


def assert_batch(step, k):
    np.testing.assert_array_equal(step["image"], batch(k))
    np.testing.assert_array_equal(step["real"], batch(k).astype(np.float32))


def test_values():
    it = iterator(count=20)
    for k, step in enumerate(it):
        assert step["image"].devices() == {gpus()[0]}
        assert (step["image"].dtype, step["real"].dtype) == (jnp.uint8, jnp.float32)
        assert_batch(step, k)
    assert k == 19


def test_memory_is_shared(monkeypatch):
    places = []
    share = Pipeline.share_outputs

    def spy(self, *arguments):
        outputs = share(self, *arguments)
        places.append([batch.data_ptr() for batch in outputs])
        return outputs

    monkeypatch.setattr(Pipeline, "share_outputs", spy)
    it = iterator()
    for k in range(4):
        step = next(it)
        assert [step[name].unsafe_buffer_pointer() for name in NAMES] == places[k]


def test_memory_is_not_used_anew_while_a_slow_kernel_has_yet_to_read_it(slow):
    """The program lets go of each batch while the device is far from reading it."""
    total = jax.jit(lambda x: x.sum(axis=(1, 2, 3), dtype=jnp.int32))
    it = iterator(depth=3)
    total(next(it)["image"]).block_until_ready()
    sums = []
    for _ in range(30):
        slow(1)
        step = next(it)
        sums.append(total(step["image"]))
        del step
    for k, found in enumerate(sums, 1):
        assert found.tolist() == batch(k).sum(axis=(1, 2, 3), dtype=np.int64).tolist(), k


def test_nobody_waits_on_the_host(slow):
    """Batches are taken and used while the device is busy with something else for long."""
    it = iterator(depth=2)
    for _ in range(5):  # everything is compiled and all memory is there
        jax.block_until_ready(next(it))
    busy = slow(50)  # a second
    steps = [next(it) for _ in range(3)]
    assert not busy.is_ready(), "taking batches lasted until the device was through"
    for k, step in enumerate(steps):
        assert_batch(step, 5 + k)


def test_kept_batches_keep_their_values():
    it = iterator(depth=2)
    kept = [next(it) for _ in range(12)]
    for k, step in enumerate(kept):
        assert_batch(step, k)


def test_memory_does_not_grow():
    from headrace.tensors.gpu.device import get_device

    it = iterator(depth=2)
    for _ in range(20):
        jax.block_until_ready(next(it))
    before = get_device(0).memory.bytes_allocated
    for _ in range(100):
        jax.block_until_ready(next(it))
    gc.collect()
    assert get_device(0).memory.bytes_allocated <= before * 1.5


def test_wide_types_become_narrow_as_everywhere_in_jax():
    pipe = Pipeline(BATCH, 2, 0)
    with pipe:
        x = fn.external_source(source=lambda k: np.arange(BATCH * 3).reshape(BATCH, 3) + k).gpu()
        pipe.set_outputs(x, fn.cast(x, dtype=types.FLOAT64))
    step = next(DALIGenericIterator(pipe, NAMES))
    assert (step["image"].dtype, step["real"].dtype) == (jnp.int32, jnp.float32)
    np.testing.assert_array_equal(step["image"], np.arange(BATCH * 3).reshape(BATCH, 3))
    np.testing.assert_array_equal(step["real"], step["image"])


def test_labels_on_the_host_and_images_on_the_gpu():
    def graph():
        data, label = fn.external_source(
            source=lambda k: (batch(k), np.arange(BATCH, dtype=np.int32) + k), num_outputs=2
        )
        return data.gpu(), label

    step = next(data_iterator(graph, NAMES)(batch_size=BATCH))
    assert step["image"].devices() == {gpus()[0]}, "the GPU is what an iterator takes by itself"
    assert step["real"].devices() == {jax.local_devices(backend="cpu")[0]}
    step = next(
        data_iterator(graph, NAMES, sharding=SingleDeviceSharding(gpus()[0]))(batch_size=BATCH)
    )
    assert step["real"].devices() == {gpus()[0]}
    np.testing.assert_array_equal(step["real"], np.arange(BATCH))


@pytest.mark.parametrize("split", [False, True])
def test_a_pipeline_on_the_cpu_feeds_the_gpu(slow, split):
    make = data_iterator(
        lambda: fn.external_source(source=lambda k: batch(k)),
        "image",
        sharding=SingleDeviceSharding(gpus()[0]),
        split_batches=split,
    )
    it = make(batch_size=BATCH, device_id=None)
    assert it._pipes[0].device_id is None
    jax.block_until_ready(next(it))
    for k in range(1, 12):
        step = next(it)
        assert step["image"].devices() == {gpus()[0]}
        np.testing.assert_array_equal(step["image"], batch(k))


def test_functions_of_jax_between_operators(slow):
    @jax_function
    @jax.jit
    def invert(images):
        return 255 - images

    @jax_function(num_outputs=2)
    def both(images, real):
        return images.sum(axis=(1, 2, 3), dtype=jnp.int32), real * 2

    seen = []

    @jax_function(num_outputs=0)
    def look(images):
        seen.append(images.sum(dtype=jnp.int32))

    pipe = Pipeline(BATCH, 2, 0, prefetch_queue_depth=3)
    with pipe:
        images = fn.external_source(source=lambda k: batch(k), layout="HWC").gpu()
        inverted = invert(images)
        sums, doubled = both(images, fn.cast(images, dtype=types.FLOAT))
        look(images)
        on_cpu = invert(images.cpu())
        pipe.set_outputs(fn.flip(inverted), sums.cpu(), doubled + 1, on_cpu)
    for k in range(12):
        if k % 3 == 0:
            slow(2)
        flipped, sums, doubled, on_cpu = pipe.run()
        assert flipped.layout() == "HWC"
        np.testing.assert_array_equal(flipped.as_cpu().as_array(), 255 - batch(k))
        assert sums.as_array().tolist() == batch(k).sum(axis=(1, 2, 3), dtype=np.int64).tolist()
        np.testing.assert_array_equal(doubled.as_cpu().as_array(), batch(k) * np.float32(2) + 1)
        np.testing.assert_array_equal(on_cpu.as_array(), 255 - batch(k))
    assert [int(found) for found in seen[:12]] == [int(batch(k).sum()) for k in range(12)]


class TestSeveralGpus:
    @pytest.fixture(autouse=True)
    def _several(self):
        if len(gpus()) < 2:
            pytest.skip("one GPU")
        from headrace.tensors.gpu.runtime import install_runtime

        install_runtime(None)  # the fixture has one GPU only

    @pytest.fixture
    def sharding(self):
        return NamedSharding(Mesh(np.array(gpus()), ("batch",)), PartitionSpec("batch"))

    @staticmethod
    def graph(num_shards, shard_id):
        images = fn.external_source(source=lambda k: batch(k)[: BATCH // num_shards] + shard_id)
        images = images.gpu()
        return images, fn.cast(images, dtype=types.FLOAT)

    def expected(self, k, count):
        return np.concatenate([batch(k)[: BATCH // count] + shard for shard in range(count)])

    @pytest.mark.parametrize("order", [1, -1])
    def test_a_pipeline_for_each(self, slow, order):
        devices = gpus()[::order]
        sharding = NamedSharding(Mesh(np.array(devices), ("batch",)), PartitionSpec("batch"))
        make = data_iterator(self.graph, NAMES, sharding=sharding, size=BATCH * 10)
        with pytest.warns(Warning, match="reader_name"):
            it = make(batch_size=BATCH)
        assert [p.device_id for p in it._pipes] == [d.local_hardware_id for d in devices]
        for k, step in enumerate(it):
            slow(1)
            assert step["image"].sharding == sharding
            np.testing.assert_array_equal(step["image"], self.expected(k, len(devices)))
            np.testing.assert_array_equal(step["real"], step["image"])
        assert k == 9

    def test_outputs_that_are_replicated(self, sharding):
        shardings = {"image": sharding, "real": NamedSharding(sharding.mesh, PartitionSpec())}
        make = data_iterator(self.graph, NAMES, sharding=shardings, size=BATCH * 4)
        with pytest.warns(Warning, match="reader_name"):
            it = make(batch_size=BATCH)
        for step in it:
            assert {k: v.sharding for k, v in step.items()} == shardings
            np.testing.assert_array_equal(step["real"], step["image"])

    def test_devices(self):
        make = data_iterator(self.graph, NAMES, devices=gpus(), size=BATCH * 4)
        with pytest.warns(Warning, match="reader_name"):
            it = make(batch_size=BATCH)
        step = next(it)
        assert step["image"].shape == (len(gpus()), BATCH // len(gpus()), *SHAPE)
        assert [s.device for s in step["image"].addressable_shards] == gpus()

    def test_a_function_on_all(self, slow, sharding):
        seen = []

        @jax_function(sharding=sharding, num_outputs=2)
        def invert(images):
            seen.append(images.sharding)
            return 255 - images, jax.device_put(images, NamedSharding(sharding.mesh, _NOT_CUT))

        pipe = Pipeline(BATCH, 2, 0, prefetch_queue_depth=3)
        with pipe:
            images = fn.external_source(source=lambda k: batch(k), layout="HWC").gpu()
            inverted, same = invert(images)
            pipe.set_outputs(fn.flip(inverted), same.cpu())
        for k in range(6):
            slow(1)
            flipped, same = pipe.run()
            expected = 255 - batch(k)[:, :, ::-1]
            np.testing.assert_array_equal(flipped.as_cpu().as_array(), expected)
            np.testing.assert_array_equal(same.as_array(), batch(k))
        assert set(seen) == {sharding}

    def test_a_batch_of_the_cpu_is_split(self, sharding):
        make = data_iterator(
            lambda: fn.external_source(source=lambda k: batch(k)),
            "image",
            sharding=sharding,
            split_batches=True,
        )
        it = make(batch_size=BATCH)
        for k in range(6):
            step = next(it)
            assert step["image"].sharding == sharding
            np.testing.assert_array_equal(step["image"], batch(k))

    def test_partial_batches(self, sharding, tmp_path):
        files = []
        for k in range(7):
            (tmp_path / f"{k}.bin").write_bytes(bytes([k]) * 64)
            files.append(str(tmp_path / f"{k}.bin"))

        def graph(num_shards, shard_id):
            data, label = fn.readers.file(
                files=files, num_shards=num_shards, shard_id=shard_id, name="reader"
            )
            return data.gpu(), label.gpu()

        make = data_iterator(
            graph,
            NAMES,
            sharding=sharding,
            reader_name="reader",
            last_batch_policy=LastBatchPolicy.PARTIAL,
        )
        shown = [k for step in make(batch_size=4) for k in np.asarray(step["real"]).ravel()]
        assert sorted(shown) == list(range(7))
