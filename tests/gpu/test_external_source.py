"""External sources whose data is on the GPU, or goes there."""

from __future__ import annotations

import ctypes
import gc
import weakref

import numpy as np
import pytest

from headrace import Pipeline, errors, fn, types
from headrace.tensors import TensorCPU, TensorGPU, TensorListCPU, TensorListGPU
from headrace.tensors.gpu import foreign_memory
from headrace.tensors.gpu.device import get_device
from tests.support.gpu.foreign import DLPackArray, InterfaceArray
from tests.support.gpu.late import late_batch

KINDS = [DLPackArray, InterfaceArray]


@pytest.fixture(autouse=True)
def _nothing_is_kept(gpu_runtime):
    yield
    gc.collect(1)
    for _ in range(10):
        foreign_memory.release_finished()


def dense(k=0):
    return np.arange(24, dtype=np.int32).reshape(4, 3, 2) + 100 * k


def ragged(k=0):
    return [np.full((i, 2), 10 * k + i, np.float32) for i in range(4)]


def pipeline(define=lambda x: x, *, batch_size=4, device="gpu", settings=None, **arguments):
    pipe = Pipeline(batch_size, 2, 0, seed=1, **(settings or {}))
    with pipe:
        made = define(fn.external_source(device=device, **arguments))
        pipe.set_outputs(*(made if isinstance(made, tuple) else (made,)))
    return pipe


def assert_rows(batch, rows):
    host = batch.as_cpu()
    assert len(host) == len(rows)
    for k, row in enumerate(rows):
        np.testing.assert_array_equal(host.at(k), row)


@pytest.mark.parametrize("no_copy", [False, True])
@pytest.mark.parametrize("make", [dense, ragged])
def test_host_data_is_uploaded(make, no_copy):
    pipe = pipeline(source=(make(k) for k in range(4)), no_copy=no_copy)
    for k in range(4):
        (out,) = pipe.run()
        assert isinstance(out, TensorListGPU)
        assert_rows(out, make(k))
    with pytest.raises(StopIteration):
        pipe.run()


@pytest.mark.parametrize("no_copy", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_arrays_on_the_gpu(gpu_runtime, kind, no_copy):
    pipe = pipeline(
        lambda x: (x, x + 1), source=lambda k: kind(gpu_runtime, dense(k)), no_copy=no_copy
    )
    for k in range(5):
        same, more = pipe.run()
        assert_rows(same, dense(k))
        assert_rows(more, dense(k) + 1)
        assert same.is_dense_tensor()


@pytest.mark.parametrize("no_copy", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_lists_of_samples_on_the_gpu(gpu_runtime, kind, no_copy):
    def source(k):
        return [kind(gpu_runtime, row) for row in ragged(k)]

    pipe = pipeline(source=source, no_copy=no_copy, layout="HW")
    for k in range(4):
        (out,) = pipe.run()
        assert out.layout() == "HW"
        assert_rows(out, ragged(k))


def test_no_copy_shares_the_memory(gpu_runtime):
    array = DLPackArray(gpu_runtime, dense())
    for no_copy in (True, False):
        pipe = pipeline(no_copy=no_copy, name="x")
        pipe.feed_input("x", array)
        pipe.feed_input("x", array)
        (out,) = pipe.run()
        assert (out[0]._address == array.address) is no_copy
        assert_rows(out, dense())


def test_samples_one_by_one(gpu_runtime):
    def source(info):
        return DLPackArray(gpu_runtime, ragged(info.iteration)[info.idx_in_batch])

    pipe = pipeline(source=source, batch=False)
    for k in range(3):
        assert_rows(pipe.run()[0], ragged(k))


def test_several_outputs(gpu_runtime):
    def source(k):
        return DLPackArray(gpu_runtime, dense(k)), ragged(k)

    pipe = Pipeline(4, 2, 0)
    with pipe:
        pipe.set_outputs(*fn.external_source(source=source, num_outputs=2, device="gpu"))
    for k in range(3):
        one, other = pipe.run()
        assert_rows(one, dense(k))
        assert_rows(other, ragged(k))


def test_tensors_of_the_library(gpu_runtime):
    pipe = pipeline(name="x")
    batch = late_batch(gpu_runtime, list(dense()), "HW")
    pipe.feed_input("x", batch)
    pipe.feed_input("x", [TensorGPU(DLPackArray(gpu_runtime, row), "HW") for row in dense(1)])
    pipe.feed_input("x", TensorGPU(DLPackArray(gpu_runtime, dense(2)), "NHW"))
    pipe.feed_input("x", TensorListCPU(dense(3), "HW"))
    pipe.feed_input("x", DLPackArray(gpu_runtime, dense(4)).__dlpack__(stream=1), "HW")
    for k in range(5):
        (out,) = pipe.run()
        assert out.layout() == "HW"
        assert_rows(out, dense(k))


def test_run_with_named_inputs(gpu_runtime):
    pipe = pipeline(name="x", settings={"prefetch_queue_depth": 1})
    for k in range(3):
        assert_rows(pipe.run(x=DLPackArray(gpu_runtime, dense(k)))[0], dense(k))


def test_the_last_batch_again(gpu_runtime):
    pipe = pipeline(name="x", repeat_last=True)
    pipe.feed_input("x", DLPackArray(gpu_runtime, dense()))
    for _ in range(4):
        assert_rows(pipe.run()[0], dense())


def test_gpu_data_for_a_source_on_the_host(gpu_runtime):
    pipe = pipeline(lambda x: x + 1, device="cpu", name="x")
    for k in range(3):
        pipe.feed_input("x", DLPackArray(gpu_runtime, dense(k)))
        pipe.feed_input("x", [DLPackArray(gpu_runtime, row) for row in dense(k)])
        for _ in range(2):
            (out,) = pipe.run()
            assert isinstance(out, TensorListCPU)
            np.testing.assert_array_equal(out.as_array(), dense(k) + 1)


def test_what_the_owner_writes_next_comes_behind_the_copy(emulated_gpu):
    """A source that uses one buffer for all batches, on a stream of its own or the default one."""
    device = get_device(0)
    memory = device.memory.take(dense().nbytes, 1)
    kept = []

    def fill(k, stream):
        pinned = device.pinned.copy_of(dense(k))
        kept.append(pinned)
        emulated_gpu.copy(memory.address, pinned.ctypes.data, pinned.nbytes, stream)

    class Buffer:
        def __init__(self, stream):
            self.__cuda_array_interface__ = {
                "version": 3,
                "shape": (4, 3, 2),
                "typestr": "<i4",
                "data": (memory.address, False),
                "stream": stream,
            }

    own = emulated_gpu.acquire_stream()
    for stream, told, given in ((1, 1, None), (own, own, None), (own, None, own)):
        pipe = pipeline(name="x", settings={"prefetch_queue_depth": 4})
        for k in range(4):
            fill(k, stream)
            pipe.feed_input("x", Buffer(told), cuda_stream=given)
        emulated_gpu.synchronize(stream)  # the owner gets ahead, as far as it may
        for k in range(4):
            assert_rows(pipe.run()[0], dense(k))
        del pipe
    emulated_gpu.synchronize(1)
    emulated_gpu.synchronize(own)
    emulated_gpu.release_stream(own)


@pytest.mark.parametrize("stream", [-1, ctypes.c_void_p(-1)])
def test_written_data_is_copied_at_once(emulated_gpu, stream):
    array = InterfaceArray(emulated_gpu, dense())
    emulated_gpu.synchronize(array.stream)
    pipe = pipeline(name="x")
    pipe.feed_input("x", array, cuda_stream=stream)
    emulated_gpu.fill(array.address, 0, dense().nbytes, array.stream)
    emulated_gpu.synchronize(array.stream)
    pipe.feed_input("x", array)
    assert_rows(pipe.run()[0], dense())


def test_the_argument_cuda_stream(emulated_gpu):
    """Data that does not say which stream it is written on."""
    stream = emulated_gpu.acquire_stream()

    class Silent:
        def __init__(self, array):
            emulated_gpu.wait(stream, emulated_gpu.record(array.stream))
            self.array = array

        @property
        def __cuda_array_interface__(self):
            return self.array.__cuda_array_interface__ | {"stream": None}

    def source(k):
        return Silent(InterfaceArray(emulated_gpu, dense(k)))

    pipe = pipeline(source=source, cuda_stream=ctypes.c_void_p(stream))
    for k in range(3):
        assert_rows(pipe.run()[0], dense(k))
    emulated_gpu.release_stream(stream)


def test_memory_goes_back_to_its_owner(gpu_runtime):
    """With `no_copy`, arrays are kept until the pipeline's work on them is done, and no longer."""
    alive = []

    def source(k):
        array = DLPackArray(gpu_runtime, dense(k))
        alive.append(weakref.ref(array))
        return array

    pipe = pipeline(lambda x: x + 1, source=source, no_copy=True)
    for k in range(12):
        assert_rows(pipe.run()[0], dense(k) + 1)
    gc.collect()
    assert sum(ref() is not None for ref in alive) <= 9


def test_mixed_batches_are_refused(gpu_runtime):
    pipe = pipeline(name="x")
    rows = list(dense())
    mixed = [DLPackArray(gpu_runtime, rows[0]), *rows[1:]]
    with pytest.raises(errors.DataTypeError, match="sample 1 is on the host, sample 0 on a GPU"):
        pipe.feed_input("x", mixed)


def test_data_of_another_gpu_is_refused(emulated_gpu):
    pipe = pipeline(name="x")
    with pytest.raises(errors.ArgumentValueError, match="on GPU 1; the pipeline runs on GPU 0"):
        pipe.feed_input("x", TensorListCPU(dense())._as_gpu(1))


def test_what_is_said_about_the_data_is_checked(gpu_runtime):
    pipe = pipeline(name="x", dtype=types.FLOAT)
    with pytest.raises(errors.DataTypeError, match="float and got: int32"):
        pipe.feed_input("x", DLPackArray(gpu_runtime, dense()))
    pipe = pipeline(name="x", ndim=3)
    with pytest.raises(errors.ShapeError, match="3 dimensions and got 2"):
        pipe.feed_input("x", DLPackArray(gpu_runtime, dense()))
    pipe = pipeline(name="x", layout="HW")
    with pytest.raises(errors.LayoutError, match='"HW" and got: "WH"'):
        pipe.feed_input("x", late_batch(gpu_runtime, list(dense()), "WH"))
    pipe = pipeline(name="x")
    with pytest.raises(errors.ShapeError, match="empty batch"):
        pipe.feed_input("x", late_batch(gpu_runtime, list(dense()))[:0])
    with pytest.raises(errors.ShapeError, match="scalar"):
        pipe.feed_input("x", TensorCPU(np.float32(1))._as_gpu())


def test_a_pipeline_on_the_cpu_takes_gpu_data(gpu_runtime):
    pipe = Pipeline(4, 2, None)
    with pipe:
        pipe.set_outputs(fn.external_source(name="x"))
    for k in range(2):
        pipe.feed_input("x", DLPackArray(gpu_runtime, dense(k)))
    for k in range(2):
        np.testing.assert_array_equal(pipe.run()[0].as_array(), dense(k))
