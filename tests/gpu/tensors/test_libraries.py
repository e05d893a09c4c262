"""Real libraries on a real GPU: CuPy and PyTorch take tensors, and give them."""

from __future__ import annotations

import gc

import numpy as np
import pytest

from headrace.tensors import TensorCPU, TensorGPU, TensorListGPU
from headrace.tensors.gpu.device import get_device
from headrace.tensors.gpu.runtime import get_runtime
from tests.support.gpu.late import late_batch

pytestmark = pytest.mark.gpu


@pytest.fixture
def data():
    return np.arange(24, dtype=np.float32).reshape(2, 3, 4)


@pytest.mark.parametrize(
    "dtype", ["?", "u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", "f2", "f4", "f8"]
)
def test_cupy_there_and_back(dtype):
    import cupy

    values = np.arange(6).reshape(2, 3).astype(dtype)
    array = cupy.asarray(values)
    tensor = TensorGPU(array, "HW")
    assert tensor.data_ptr() == array.data.ptr
    assert tensor.device_id() == 0
    np.testing.assert_array_equal(tensor.as_cpu(), values)
    for again in (cupy.from_dlpack(tensor), cupy.asarray(tensor)):
        assert again.data.ptr == array.data.ptr
        assert again.dtype == values.dtype
        np.testing.assert_array_equal(again.get(), values)


def test_cupy_waits(gpu_runtime, data):
    import cupy

    for _ in range(20):
        batch = late_batch(gpu_runtime, list(data))
        stream = cupy.cuda.Stream(non_blocking=True)
        with stream:
            array = cupy.from_dlpack(batch.as_tensor())
            total = array.sum()
        assert array.data.ptr == batch.data_ptr()
        assert float(total.get(stream=stream)) == data.sum()
        np.testing.assert_array_equal(cupy.asarray(batch.as_tensor()).get(), data)


def test_streams_that_are_gone(gpu_runtime, data):
    """CuPy's streams are kept as long as memory may be waited for on them."""
    import cupy

    pool = get_device(0).memory
    for _ in range(50):
        batch = late_batch(gpu_runtime, list(data))
        stream = cupy.cuda.Stream(non_blocking=True)
        with stream:
            total = cupy.from_dlpack(batch.as_tensor()).sum()
        del stream
        writer = batch.stream
        del batch
        gc.collect()
        del total
        for _ in range(3):
            pool.take(data.nbytes, writer)


def test_strided_cupy_arrays_are_refused(data):
    import cupy

    from headrace.errors import ShapeError

    with pytest.raises(ShapeError, match=r"cupy\.ascontiguousarray"):
        TensorGPU(cupy.asarray(data).T)


@pytest.mark.parametrize(
    "dtype", ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64"]
)
def test_pytorch_there_and_back(dtype):
    torch = pytest.importorskip("torch")
    source = torch.arange(6, device="cuda").reshape(2, 3).to(getattr(torch, dtype))
    tensor = TensorGPU(source)
    assert tensor.data_ptr() == source.data_ptr()
    again = torch.from_dlpack(tensor)
    assert again.data_ptr() == source.data_ptr()
    assert again.device == source.device
    assert torch.equal(again, source)
    assert torch.equal(torch.as_tensor(tensor, device="cuda"), source)
    np.testing.assert_array_equal(tensor.as_cpu(), source.cpu())


def test_pytorch_on_a_side_stream_is_waited_for():
    torch = pytest.importorskip("torch")
    side = torch.cuda.Stream()
    for k in range(10):
        with torch.cuda.stream(side):
            source = torch.zeros(1 << 20, device="cuda")
            torch.cuda._sleep(2_000_000)
            source += k
            tensor = TensorGPU(source)
        assert np.asarray(tensor.as_cpu())[-1] == k


def test_pytorch_s_memory_is_kept_while_we_read_it():
    """Its allocator hands memory out again the moment a tensor is gone."""
    torch = pytest.importorskip("torch")
    runtime = get_runtime(0)
    for k in range(10):
        source = torch.full((1 << 22,), k, device="cuda", dtype=torch.int32)
        tensor = TensorGPU(source)
        stream = runtime.acquire_stream()
        tensor._access.grant(stream)
        with torch.cuda.stream(torch.cuda.ExternalStream(stream)):
            torch.cuda._sleep(4_000_000)
        copied = tensor._make_copy()
        runtime.release_stream(stream)
        del source, tensor
        overwritten = torch.full((1 << 22,), -1, device="cuda", dtype=torch.int32)
        assert (np.asarray(copied.as_cpu()) == k).all()
        del overwritten


class Interface:
    """An array of CuPy's that speaks nothing but the CUDA array interface."""

    def __init__(self, array):
        self.array = array

    @property
    def __cuda_array_interface__(self):
        return self.array.__cuda_array_interface__


def _full(kind, shape, value, stream):
    """An array that is written on PyTorch's stream, which is its library's current one."""
    import cupy
    import torch

    if kind == "torch":
        return torch.full(shape, value, device="cuda", dtype=torch.int32)
    with cupy.cuda.ExternalStream(stream.cuda_stream):
        array = cupy.full(shape, value, np.int32)
    return array if kind == "cupy" else Interface(array)


old_external_stream = pytest.mark.filterwarnings("ignore:ExternalStream is deprecated")


@old_external_stream
@pytest.mark.parametrize("kind", ["cupy", "torch", "interface"])
@pytest.mark.parametrize("contiguous", [False, True])
def test_lists_are_waited_for(kind, contiguous):
    import cupy

    torch = pytest.importorskip("torch")
    side = torch.cuda.Stream()
    for k in range(5):
        with torch.cuda.stream(side), cupy.cuda.ExternalStream(side.cuda_stream):
            torch.cuda._sleep(4_000_000)
            arrays = [_full(kind, (1 + i, 1000), k + i, side) for i in range(20)]
            batch = TensorListGPU(arrays, "HW", contiguous)
        for i, found in enumerate(batch.as_cpu()):
            assert found.shape() == [1 + i, 1000]
            assert (np.asarray(found) == k + i).all()


@old_external_stream
@pytest.mark.parametrize("kind", ["cupy", "torch", "interface"])
def test_memory_of_lists_is_kept_while_we_read_it(kind):
    torch = pytest.importorskip("torch")
    runtime = get_runtime(0)
    side = torch.cuda.Stream()
    for k in range(5):
        with torch.cuda.stream(side):
            arrays = [_full(kind, (1 << 20,), k + i, side) for i in range(12)]
            side.synchronize()
            batch = TensorListGPU(arrays, contiguous=False)
            stream = runtime.acquire_stream()
            with torch.cuda.stream(torch.cuda.ExternalStream(stream)):
                torch.cuda._sleep(8_000_000)
            runtime.release_stream(stream)
            copied = batch._make_copy()  # on the stream that was released last, behind the sleep
            del arrays, batch
            overwritten = [_full(kind, (1 << 20,), -1, side) for _ in range(12)]
        for i, found in enumerate(copied.as_cpu()):
            assert (np.asarray(found) == k + i).all()
        del overwritten


def test_tensors_that_need_a_gradient_say_so():
    torch = pytest.importorskip("torch")
    from headrace.errors import ArgumentTypeError

    with pytest.raises(ArgumentTypeError, match="grad"):
        TensorGPU(torch.zeros(3, device="cuda", requires_grad=True))


def test_empty_tensors():
    torch = pytest.importorskip("torch")
    tensor = TensorGPU(torch.zeros((0, 3), device="cuda"))
    assert torch.from_dlpack(tensor).shape == (0, 3)
    batch = TensorListGPU(torch.ones((2, 3), device="cuda"))[:0]
    assert torch.from_dlpack(batch.as_tensor()).shape == (0, 3)


def test_jax_there_and_back(data):
    jax = pytest.importorskip("jax")
    if jax.default_backend() != "gpu":
        pytest.skip("JAX has no GPU here")
    tensor = TensorCPU(data)._as_gpu()
    array = jax.dlpack.from_dlpack(tensor)
    np.testing.assert_array_equal(array, data)
    np.testing.assert_array_equal(TensorGPU(array).as_cpu(), data)
