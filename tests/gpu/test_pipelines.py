"""Pipelines with work for a GPU: transfers, streams, hops between the devices, memory, errors."""

from __future__ import annotations

import gc
import threading

import numpy as np
import pytest

from headrace import Pipeline, backend, errors, fn, pipeline_def, types
from headrace.tensors import TensorListCPU, TensorListGPU


def ragged(iteration):
    return [np.full((i + 1, 2), 10 * iteration + i, np.float32) for i in range(4)]


def dense(iteration):
    return np.arange(24, dtype=np.int32).reshape(4, 3, 2) + iteration


class Counting:
    """A source that knows how often it was asked."""

    def __init__(self, make):
        self.make = make
        self.calls = 0

    def __call__(self):
        self.calls += 1
        return self.make(self.calls - 1)


def samples(batch):
    assert isinstance(batch, TensorListGPU)
    host = batch.as_cpu()
    return [host.at(i) for i in range(len(host))]


def assert_same(got, expected):
    assert len(got) == len(expected)
    for one, other in zip(got, expected, strict=True):
        np.testing.assert_array_equal(one, other)


def pipe_of(define, **settings):
    settings = {"batch_size": 4, "num_threads": 2, "device_id": 0, "seed": 1, **settings}
    pipe = Pipeline(**settings)
    with pipe:
        found = define()
        pipe.set_outputs(*(found if isinstance(found, tuple) else (found,)))
    return pipe


@pytest.mark.parametrize("depth", [1, 2, 4])
@pytest.mark.parametrize("make", [ragged, dense])
def test_there_and_back(make, depth):
    def define():
        x = fn.external_source(source=Counting(make))
        on_gpu = x.gpu()
        return on_gpu, on_gpu.cpu(), x, (x + 1).gpu().cpu() * 2

    pipe = pipe_of(define, prefetch_queue_depth=depth)
    for iteration in range(12):
        there, back, x, hop = pipe.run()
        assert_same(samples(there), list(make(iteration)))
        assert isinstance(back, TensorListCPU)
        assert_same([back.at(i) for i in range(4)], list(make(iteration)))
        assert_same([x.at(i) for i in range(4)], list(make(iteration)))
        assert_same([hop.at(i) for i in range(4)], [(v + 1) * 2 for v in make(iteration)])


def test_plans_read_inputs_that_are_on_the_cpu():
    shapes = [[2, 3], [3, 2], [6, 1], [1, 6]]
    moves = [np.float32([[1, 0, k], [0, 1, 0]]) for k in range(4)]

    def define():
        data = fn.external_source(source=lambda: [np.arange(6, dtype=np.float32)] * 4).gpu()
        wanted = fn.external_source(source=lambda: [np.int32(shape) for shape in shapes])
        images = fn.external_source(source=Counting(lambda _: np.ones((4, 5, 6, 3), np.uint8)))
        moved = fn.warp_affine(
            images.gpu(), fn.external_source(source=lambda: moves), fill_value=7, inverse_map=False
        )
        return fn.reshape(data, wanted), moved

    reshaped, moved = pipe_of(define).run()
    assert [each.shape for each in samples(reshaped)] == [tuple(shape) for shape in shapes]
    assert [int((each[0, :, 0] == 7).sum()) for each in samples(moved)] == [0, 1, 2, 3]


def test_many_batches_kept(gpu_runtime):
    pipe = pipe_of(lambda: (fn.external_source(source=Counting(dense)) + 0).gpu())
    kept = [pipe.run()[0] for _ in range(20)]
    for iteration, batch in enumerate(kept):
        assert_same(samples(batch), list(dense(iteration)))


def test_a_batch_goes_over_once(gpu_runtime):
    def define():
        x = fn.external_source(source=Counting(dense))
        return x.gpu(), x.gpu(), fn.copy(x.gpu())

    pipe = pipe_of(define)
    first, second, _ = pipe.run()
    assert first.data_ptr() == second.data_ptr()


def test_shapes_of_what_is_on_the_gpu_need_no_copy():
    def define():
        x = fn.external_source(source=Counting(ragged), layout="HW").gpu()
        return x.shape(), fn.get_property(x, key="layout", device="cpu"), x.shape(device="gpu")

    pipe = pipe_of(define)
    shapes, layouts, on_gpu = pipe.run()
    assert [shapes.at(i).tolist() for i in range(4)] == [[i + 1, 2] for i in range(4)]
    assert bytes(layouts.at(0)) == b"HW"
    assert_same(samples(on_gpu), [np.array([i + 1, 2]) for i in range(4)])


def test_sources_fed_on_the_gpu():
    def define():
        x = fn.external_source(source=Counting(dense), device="gpu")
        return x, x + 1

    pipe = pipe_of(define)
    for iteration in range(5):
        x, more = pipe.run()
        assert_same(samples(x), list(dense(iteration)))
        assert_same(samples(more), list(dense(iteration) + 1))


def test_random_numbers_are_those_of_the_cpu():
    def define(device):
        return (
            fn.random.uniform(range=(-1, 1), shape=(5,), device=device, seed=3),
            fn.random.coin_flip(device=device, seed=4),
        )

    on_gpu, on_cpu = pipe_of(lambda: define("gpu")), pipe_of(lambda: define("cpu"))
    for _ in range(3):
        for there, here in zip(on_gpu.run(), on_cpu.run(), strict=True):
            assert_same(samples(there), [here.at(i) for i in range(4)])


def test_arguments_differ_by_sample():
    angles = fn.random.uniform

    def define(device):
        x = fn.external_source(
            source=lambda: [
                np.random.default_rng(i).integers(0, 255, (20 + i, 30, 3), np.uint8)
                for i in range(4)
            ],
            layout="HWC",
        )
        x = x.gpu() if device == "gpu" else x
        return fn.rotate(x, angle=angles(range=(-30, 30), seed=9), fill_value=3)

    there, here = pipe_of(lambda: define("gpu")).run()[0], pipe_of(lambda: define("cpu")).run()[0]
    for one, other in zip(samples(there), [here.at(i) for i in range(4)], strict=True):
        assert one.shape == other.shape
        assert np.abs(one.astype(int) - other).max() <= 1


@pytest.mark.parametrize("operator", [fn.crop, fn.slice])
def test_arguments_that_are_rows_of_an_array_in_another_order(operator):
    images = [np.arange(40, dtype=np.uint8).reshape(2, 20, 1) for _ in range(4)]
    places = np.linspace(0, 1, 4, dtype=np.float32)
    starts = np.stack((np.arange(4), np.zeros(4)), axis=1).astype(np.float32)
    order = [0, 2, 1, 3]

    def define():
        x = fn.external_source(source=lambda: images, layout="HWC").gpu()
        if operator is fn.crop:
            place = fn.external_source(source=lambda: [places[i, ...] for i in order], no_copy=True)
            return fn.crop(x, crop=(2, 17), crop_pos_x=place)
        start = fn.external_source(source=lambda: [starts[i] for i in order], no_copy=True)
        return fn.slice(
            x, start, np.float32([17, 2]), axis_names="WH", normalized_anchor=False,
            normalized_shape=False,
        )  # fmt: skip

    (batch,) = pipe_of(define).run()
    assert [int(s[0, 0, 0]) for s in samples(batch)] == order


def test_arguments_that_the_gpu_makes():
    """Who reads them waits until they are on the host."""

    def define():
        images = fn.external_source(
            lambda: [np.arange(24, dtype=np.uint8).reshape(4, 2, 3) + k for k in range(4)],
            layout="HWC",
        ).gpu()
        row = fn.cast(images[0, 0, 0], dtype=types.FLOAT).cpu() / 3
        return fn.crop(images, crop=(1, 2), crop_pos_y=row), row

    pipe = pipe_of(define)
    for _ in range(2):
        found, rows = pipe.run()
        np.testing.assert_array_equal(rows.as_array(), np.arange(4, dtype=np.float32) / 3)
        assert [int(s[0, 0, 0]) for s in samples(found)] == [7 * k for k in range(4)]


def test_epochs_reset_and_broken_off():
    calls = []

    def source(info):
        calls.append(info.iteration)
        if info.iteration >= 5:
            raise StopIteration
        return np.full((2,), info.iteration, np.int32)

    pipe = pipe_of(
        lambda: fn.external_source(source=source, batch=False).gpu() + 1, prefetch_queue_depth=3
    )
    for _ in range(3):
        seen = [int(samples(pipe.run()[0])[0][0]) for _ in range(5)]
        with pytest.raises(StopIteration):
            pipe.run()
        assert seen == [1, 2, 3, 4, 5]
        pipe.reset()


def test_two_pipelines_at_once():
    pipes = [
        pipe_of(lambda k=k: (fn.external_source(source=Counting(dense)) + k).gpu() * 3)
        for k in range(2)
    ]
    for iteration in range(6):
        for k, pipe in enumerate(pipes):
            assert_same(samples(pipe.run()[0]), list((dense(iteration) + k) * 3))


def test_several_devices(emulated_gpu):
    pipes = [
        pipe_of(lambda: fn.external_source(source=Counting(dense)).gpu() * 3, device_id=k)
        for k in range(3)
    ]
    for iteration in range(4):
        for k, pipe in enumerate(pipes):
            (batch,) = pipe.run()
            assert batch.device_id() == k
            assert_same(samples(batch), list(dense(iteration) * 3))


def test_nothing_is_left_behind(emulated_gpu):
    before = threading.active_count()
    pipe = pipe_of(lambda: (fn.external_source(source=Counting(ragged)) + 1).gpu())
    for _ in range(30):
        pipe.run()
    allocated = emulated_gpu._memory.device_bytes
    for _ in range(100):
        pipe.run()
    assert emulated_gpu._memory.device_bytes == allocated
    del pipe
    gc.collect()
    deadline = threading.Event()
    for _ in range(100):
        if threading.active_count() <= before:
            break
        deadline.wait(0.05)
    assert threading.active_count() <= before


def test_memory_is_given_back(emulated_gpu):
    pipe = pipe_of(lambda: (fn.external_source(source=Counting(dense)) + 1).gpu() * 2)
    for _ in range(10):
        pipe.run()
    del pipe
    gc.collect()
    held = emulated_gpu._memory.device_bytes
    assert held
    for _ in range(100):  # a stream may just be letting go
        backend.ReleaseUnusedMemory()
        if emulated_gpu._memory.device_bytes == 0:
            break
        threading.Event().wait(0.02)
    assert emulated_gpu._memory.device_bytes == 0


def test_an_error_says_where():
    def define():
        x = fn.external_source(source=Counting(dense)).gpu()
        return fn.crop(x, crop=(2, 2))

    pipe = pipe_of(define)
    with pytest.raises(errors.OperatorError, match=r"fn\.crop.*test_pipelines.py"):
        pipe.run()


def test_wrong_device():
    with Pipeline(4, 1, 0):
        x = fn.external_source(source=Counting(dense), layout="HWC")
        with pytest.raises(RuntimeError, match=r'incompatible device "cpu".*`\.gpu\(\)`'):
            fn.crop(x, device="gpu", crop=(1, 1))
        with pytest.raises(RuntimeError, match=r'incompatible device "gpu".*`\.cpu\(\)`'):
            fn.crop(x.gpu(), device="cpu", crop=(1, 1))
        with pytest.raises(errors.UsageError, match="Named arguments must be on CPU"):
            fn.rotate(x.gpu(), angle=x.gpu())
        with pytest.raises(RuntimeError, match="incompatible device"):
            fn.decoders.image(x.gpu(), device="mixed")


def test_a_pipeline_without_a_gpu_says_so():
    pipe = pipe_of(lambda: fn.external_source(source=Counting(dense)).gpu(), device_id=None)
    with pytest.raises(errors.UsageError, match=r"`device_id` is None.*\.gpu\(\)"):
        pipe.build()


def test_outputs_are_ready_on_the_stream_that_is_named(gpu_runtime):
    pipe = pipe_of(lambda: fn.external_source(source=Counting(dense)).gpu() + 1)
    stream = gpu_runtime.acquire_stream()
    for iteration in range(4):
        (batch,) = pipe.run(stream)
        host = np.empty((4, 3, 2), np.int32)
        address = gpu_runtime.allocate_pinned(host.nbytes)
        gpu_runtime.copy(address, batch.data_ptr(), host.nbytes, stream)
        gpu_runtime.synchronize(stream)
        import ctypes

        ctypes.memmove(host.ctypes.data, address, host.nbytes)
        gpu_runtime.free_pinned(address)
        np.testing.assert_array_equal(host, dense(iteration) + 1)
    gpu_runtime.release_stream(stream)


@pipeline_def(batch_size=3, num_threads=2, device_id=0, seed=5)
def augmented(make):
    x = fn.external_source(source=make, layout="HWC").gpu()
    x = fn.resize(x, resize_x=24, resize_y=20)
    x = fn.crop(x, crop=(16, 16))
    x = fn.brightness_contrast(x, brightness=fn.random.uniform(range=(0.5, 1.5)))
    x = fn.flip(x, horizontal=fn.random.coin_flip())
    return fn.crop_mirror_normalize(
        x, mean=[1.0, 2.0, 3.0], std=[4.0, 5.0, 6.0], mirror=fn.random.coin_flip()
    )


def test_fused_and_unfused_are_the_same():
    def images():
        rng = np.random.default_rng(0)
        return [rng.integers(0, 255, (30 + i, 41 - i, 3), np.uint8) for i in range(3)]

    fused, unfused = augmented(images), augmented(images, fuse=False)
    for _ in range(3):
        assert_same(samples(fused.run()[0]), samples(unfused.run()[0]))


def test_dtype_that_a_constant_has_on_the_gpu():
    def define():
        x = fn.external_source(source=Counting(dense)).gpu()
        return x * types.Constant(2, types.UINT8), types.Constant([1, 2, 3], device="gpu")

    scaled, constant = pipe_of(define).run()
    assert_same(samples(scaled), list(dense(0) * 2))
    assert_same(samples(constant), [np.array([1, 2, 3], np.int32)] * 4)


def test_arithmetic_with_nothing_but_numbers():
    def define():
        x = fn.external_source(source=lambda: np.arange(4, dtype=np.int32))
        return x.gpu() + 1, x.gpu() * x.gpu(), x.gpu() + x

    found = [batch.as_cpu().as_array().tolist() for batch in pipe_of(define).run()]
    assert found == [[1, 2, 3, 4], [0, 1, 4, 9], [0, 2, 4, 6]]
