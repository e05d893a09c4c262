"""Global arrays over two real GPUs in one process."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from headrace import fn, types

jax = pytest.importorskip("jax")

from jax.sharding import Mesh, NamedSharding, PartitionSpec  # noqa: E402 - where there is JAX

from headrace.plugin.jax import LastBatchPolicy, data_iterator  # noqa: E402

pytestmark = pytest.mark.gpu

FILES = 21
SIZE = 8
OUTPUTS = ["images", "labels"]


@pytest.fixture(autouse=True)
def devices(gpu_runtime):
    from headrace.tensors.gpu.runtime import install_runtime

    try:
        found = jax.local_devices(backend="gpu")
    except RuntimeError:
        found = []
    if len(found) < 2:
        pytest.skip("needs two GPUs")
    install_runtime(None)  # `gpu_runtime` has one of them
    yield found[:2]
    gpu_runtime.activate()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    rng = np.random.default_rng(2)
    for number in range(FILES):
        image = cv2.GaussianBlur(rng.integers(0, 255, (60 + number, 70, 3), np.uint8), (5, 5), 2)
        path = folder / f"{number:02}" / "image.jpg"
        path.parent.mkdir()
        assert cv2.imwrite(str(path), image)
    return folder


def over(devices, *spec):
    return NamedSharding(Mesh(np.array(devices), ("batch",)), PartitionSpec(*spec))


def graph(folder, device="mixed", **shard):
    encoded, labels = fn.readers.file(file_root=folder, name="reader", pad_last_batch=True, **shard)
    images = fn.resize(fn.decoders.image(encoded, device=device), size=(32, 32))
    images = fn.rotate(images, angle=fn.random.uniform(range=(-20, 20)), keep_size=True)
    return fn.cast(images, dtype=types.FLOAT), labels


def sharded(folder, sharding, **arguments):
    @data_iterator(output_map=OUTPUTS, reader_name="reader", sharding=sharding, **arguments)
    def make(num_shards, shard_id):
        return graph(folder, num_shards=num_shards, shard_id=shard_id)

    return make(batch_size=SIZE, seed=5)


def split(folder, devices, **arguments):
    """Batches of one pipeline on the CPU for all devices."""

    @data_iterator(
        output_map=OUTPUTS,
        reader_name="reader",
        sharding=over(devices, "batch"),
        split_batches=True,
    )
    def make():
        return graph(folder, device="cpu")

    return make(batch_size=SIZE, seed=5, device_id=None, enable_checkpointing=True, **arguments)


def test_each_gpu_has_what_a_single_one_makes_of_its_shard(folder, devices):
    sharding = over(devices, "batch")
    steps = list(sharded(folder, sharding, last_batch_policy=LastBatchPolicy.DROP))
    assert len(steps) == FILES // SIZE
    for k, device in enumerate(devices):

        @data_iterator(output_map=OUTPUTS, reader_name="reader")
        def alone(k=k):
            return graph(folder, num_shards=2, shard_id=k)

        for step, expected in zip(
            steps, alone(batch_size=SIZE // 2, seed=5, device_id=0), strict=False
        ):
            assert step["images"].sharding == sharding
            (there,) = [s for s in step["images"].addressable_shards if s.device == device]
            np.testing.assert_array_equal(there.data, expected["images"])


@pytest.mark.parametrize("policy", list(LastBatchPolicy), ids=lambda p: p.name)
def test_an_epoch_has_each_sample(folder, devices, policy):
    iterator = sharded(folder, over(devices, "batch"), last_batch_policy=policy)
    for _ in range(2):
        seen = [int(n) for step in iterator for n in np.asarray(step["labels"]).ravel()]
        if policy == LastBatchPolicy.PARTIAL:
            assert sorted(seen) == list(range(FILES))
        elif policy == LastBatchPolicy.FILL:
            assert set(seen) == set(range(FILES))
        else:
            assert len(seen) == len(set(seen)) == FILES // SIZE * SIZE


def test_a_sharding_for_each_output(folder, devices):
    batch, everywhere = over(devices, "batch"), over(devices)
    step = next(sharded(folder, {"images": batch, "labels": everywhere}))
    assert step["images"].sharding == batch
    assert step["labels"].sharding == everywhere
    for shard in step["labels"].addressable_shards:
        np.testing.assert_array_equal(shard.data, step["labels"])


def test_devices_have_an_axis(folder, devices):
    @data_iterator(output_map=OUTPUTS, reader_name="reader", devices=devices)
    def make(num_shards, shard_id):
        return graph(folder, num_shards=num_shards, shard_id=shard_id)

    step = next(make(batch_size=SIZE, seed=5))
    assert step["images"].shape == (2, SIZE // 2, 32, 32, 3)
    total = jax.pmap(lambda images: images.sum())(step["images"])
    np.testing.assert_allclose(total, np.asarray(step["images"]).sum((1, 2, 3, 4)), rtol=1e-4)


@pytest.mark.parametrize(("before", "after"), [(1, 2), (2, 1), (2, 2)])
def test_resumed_on_another_number_of_gpus(folder, devices, before, after):
    whole = [jax.device_get(step) for step in split(folder, devices[:1])]
    iterator = split(folder, devices[:before])
    next(iterator)
    saved = iterator.checkpoints()
    rest = split(folder, devices[:after], checkpoints=saved)
    for expected, step in zip(whole[1:], rest, strict=True):
        assert len(step["images"].sharding.device_set) == after
        np.testing.assert_array_equal(step["images"], expected["images"])
        np.testing.assert_array_equal(step["labels"], expected["labels"])
