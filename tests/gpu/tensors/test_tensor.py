"""`TensorGPU`: memory of the engine and of others, shared, in the order of streams."""

from __future__ import annotations

import copy
import ctypes
import gc
import pickle
import weakref

import numpy as np
import pytest
import torch
from torch.utils.dlpack import from_dlpack

from headrace import errors, types
from headrace.tensors import TensorCPU, TensorGPU
from headrace.tensors.device import DLDeviceType
from headrace.tensors.gpu import foreign_memory
from headrace.tensors.gpu.device import get_device
from tests.support.gpu.foreign import DLPackArray, InterfaceArray, OldDLPackArray
from tests.support.gpu.late import late_batch, read_on

KINDS = [DLPackArray, OldDLPackArray, InterfaceArray]


@pytest.fixture
def data():
    return np.arange(12, dtype=np.float32).reshape(3, 4)


def late_tensor(runtime, data, layout="", dtype=None, source=""):
    """A tensor of the engine, whose values are on their way."""
    return late_batch(runtime, [data], layout, dtype, [source] if source else None)[0]


@pytest.mark.parametrize("kind", KINDS)
def test_other_libraries_arrays_are_shared(gpu_runtime, data, kind):
    array = kind(gpu_runtime, data)
    tensor = TensorGPU(array, "HW")
    assert tensor.data_ptr() == array.address
    assert (tensor.shape(), tensor.ndim(), tensor.dtype) == ([3, 4], 2, types.FLOAT)
    assert (tensor.layout(), tensor.source_info(), tensor.device_id()) == ("HW", "", 0)
    np.testing.assert_array_equal(tensor.as_cpu(), data)


@pytest.mark.sweep
@pytest.mark.parametrize("dtype", [bool, "u1", "i2", "f2", "u8", "f8"])
@pytest.mark.parametrize("kind", KINDS)
def test_element_types(gpu_runtime, kind, dtype):
    values = np.arange(5).astype(dtype)
    tensor = TensorGPU(kind(gpu_runtime, values))
    assert tensor.dtype == types.to_dali_type(values.dtype)
    result = np.asarray(tensor.as_cpu())
    assert result.dtype == values.dtype
    np.testing.assert_array_equal(result, values)


@pytest.mark.sweep
@pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3), (1,)])
@pytest.mark.parametrize("kind", KINDS)
def test_shapes_of_few_elements(gpu_runtime, kind, shape):
    values = np.full(shape, 7, np.int32)
    tensor = TensorGPU(kind(gpu_runtime, values))
    assert tensor.shape() == list(shape)
    np.testing.assert_array_equal(tensor.as_cpu(), values)


def test_importers_stream_waits_for_the_writer(gpu_runtime, data):
    array = DLPackArray(gpu_runtime, data)
    tensor = TensorGPU(array)
    assert array.asked == [tensor.stream]
    assert tensor.stream not in (0, 1, array.stream)
    given = gpu_runtime.acquire_stream()
    assert TensorGPU(array, stream=given).stream == given
    assert array.asked[-1] == given
    assert TensorGPU(InterfaceArray(gpu_runtime, data)).stream not in (None, 1)
    old = InterfaceArray(gpu_runtime, data, interface_version=2)
    assert TensorGPU(old).stream == 1
    gpu_runtime.release_stream(given)


def test_capsules(gpu_runtime, data):
    array = DLPackArray(gpu_runtime, data)
    capsule = array.capsule()
    tensor = TensorGPU(capsule, "HW", stream=ctypes.c_void_p(array.stream))
    assert tensor.data_ptr() == array.address
    np.testing.assert_array_equal(tensor.as_cpu(), data)
    with pytest.raises(errors.UsageError, match="used before"):
        TensorGPU(capsule)
    assert TensorGPU(array.capsule()).stream == 1


def test_memory_of_others_is_kept_while_it_is_read(gpu_runtime, data):
    """The other library frees memory with its array; on the emulator that is an error then."""
    array = DLPackArray(gpu_runtime, data)
    tensor = TensorGPU(array)
    copied = tensor._make_copy()
    del array, tensor
    gc.collect()
    np.testing.assert_array_equal(copied.as_cpu(), data)
    for _ in range(5):
        foreign_memory.release_finished()
    assert not foreign_memory._waiting


def test_what_is_exported_is_the_memory_itself(gpu_runtime, data):
    tensor = late_tensor(gpu_runtime, data)
    stream = gpu_runtime.acquire_stream()
    other = from_dlpack(tensor.__dlpack__(stream=stream))
    gpu_runtime.synchronize(stream)
    assert other.data_ptr() == tensor.data_ptr()
    np.testing.assert_array_equal(other.cpu(), data)
    assert tensor.__dlpack_device__() == (DLDeviceType.kDLCUDA, 0)
    gpu_runtime.release_stream(stream)


@pytest.mark.parametrize("version", [None, (1, 0)])
def test_exports_reach_the_readers_stream_without_waiting(emulated_gpu, data, version):
    tensor = late_tensor(emulated_gpu, data)
    reader = emulated_gpu.acquire_stream()
    other = from_dlpack(tensor.__dlpack__(stream=reader, max_version=version))
    assert any("copy" in what for what in emulated_gpu.pending()), "the host has waited"
    np.testing.assert_array_equal(read_on(emulated_gpu, other.data_ptr(), data, reader), data)
    emulated_gpu.release_stream(reader)


def test_no_stream_means_any_and_waits(emulated_gpu, data):
    other = from_dlpack(late_tensor(emulated_gpu, data).__dlpack__())
    np.testing.assert_array_equal(other, data)


def test_minus_one_means_nobody_waits(emulated_gpu, data):
    tensor = late_tensor(emulated_gpu, data)
    other = from_dlpack(tensor.__dlpack__(stream=-1))
    assert any("copy" in what for what in emulated_gpu.pending())
    assert not np.array_equal(other, data)


def test_memory_is_not_reused_while_an_importer_reads(emulated_gpu, data):
    tensor = late_tensor(emulated_gpu, data)
    reader = emulated_gpu.acquire_stream()
    address, writer = tensor.data_ptr(), tensor.stream
    other = from_dlpack(tensor.__dlpack__(stream=reader))
    out = get_device(0).pinned.empty(data.shape, data.dtype)
    emulated_gpu.copy(out.ctypes.data, other.data_ptr(), data.nbytes, reader)
    del tensor, other
    gc.collect()
    pool = get_device(0).memory
    again = pool.take(data.nbytes, writer)
    assert again.address != address, "the reader may not be through"
    emulated_gpu.synchronize(reader)
    emulated_gpu.synchronize(1)
    np.testing.assert_array_equal(out, data)
    assert pool.take(data.nbytes, writer).address == address, "now it is free"
    del again
    emulated_gpu.release_stream(reader)


def test_exports_keep_the_memory(gpu_runtime, data):
    tensor = late_tensor(gpu_runtime, data)
    writer, address = tensor.stream, tensor.data_ptr()
    other = from_dlpack(tensor.__dlpack__())
    del tensor
    gc.collect()
    assert get_device(0).memory.take(data.nbytes, writer).address != address
    np.testing.assert_array_equal(other.cpu(), data)


def test_unconsumed_capsules_let_go(gpu_runtime, data):
    tensor = late_tensor(gpu_runtime, data)
    for version in (None, (1, 0)):
        capsule = tensor.__dlpack__(max_version=version)
        del capsule
    memory = weakref.ref(tensor._access.owners[0])
    del tensor
    assert memory() is None


def test_export_to_the_host(gpu_runtime, data):
    tensor = late_tensor(gpu_runtime, data)
    host = np.from_dlpack(TensorCPU(tensor.__dlpack__(dl_device=(DLDeviceType.kDLCPU, 0))))
    np.testing.assert_array_equal(host, data)
    with pytest.raises(BufferError, match="without a copy"):
        tensor.__dlpack__(dl_device=(1, 0), copy=False)
    with pytest.raises(BufferError, match="kDLCUDA:3"):
        tensor.__dlpack__(dl_device=(2, 3))
    same = from_dlpack(tensor.__dlpack__(dl_device=(2, 0), copy=False))
    assert same.data_ptr() == tensor.data_ptr()
    copied = from_dlpack(tensor.__dlpack__(copy=True))
    assert copied.data_ptr() != tensor.data_ptr()
    np.testing.assert_array_equal(copied.cpu(), data)


def test_streams_of_consumers_are_checked(gpu_runtime, data):
    tensor = late_tensor(gpu_runtime, data)
    with pytest.raises(errors.ArgumentValueError, match="`stream` is 0"):
        tensor.__dlpack__(stream=0)
    with pytest.raises(errors.ArgumentValueError, match="-5"):
        tensor.__dlpack__(stream=-5)
    with pytest.raises(errors.ArgumentTypeError, match="CUDA stream"):
        tensor.__dlpack__(stream="main")


@pytest.mark.parametrize("told", [True, False])
def test_cuda_array_interface(emulated_gpu, data, told):
    tensor = late_tensor(emulated_gpu, data)
    interface = tensor.__cuda_array_interface__
    reader = interface.pop("stream")
    assert interface == {
        "version": 3,
        "shape": (3, 4),
        "typestr": "<f4",
        "data": (tensor._address, False),
        "strides": None,
    }
    assert any("copy" in what for what in emulated_gpu.pending())
    # The default stream has been made to wait, too, and not because somebody else has waited.
    seen = read_on(emulated_gpu, tensor._address, data, reader if told else 1)
    np.testing.assert_array_equal(seen, data)
    assert tensor.__cuda_array_interface__["stream"] is None, "it is written"


def test_round_trip_through_the_interface(gpu_runtime, data):
    tensor = late_tensor(gpu_runtime, data)
    again = TensorGPU(tensor)
    assert again.data_ptr() == tensor.data_ptr()

    class Interface:
        __cuda_array_interface__ = tensor.__cuda_array_interface__

    other = TensorGPU(Interface())
    assert other.data_ptr() == tensor.data_ptr()
    np.testing.assert_array_equal(other.as_cpu(), data)


def test_uploading_and_back(gpu_runtime, data):
    host = TensorCPU._wrap(data, "HW", types.FLOAT, "a.jpg")
    tensor = host._as_gpu()
    assert (tensor.layout(), tensor.source_info(), tensor.dtype) == ("HW", "a.jpg", types.FLOAT)
    assert tensor.stream is None
    back = tensor.as_cpu()
    assert (back.layout(), back.source_info()) == ("HW", "a.jpg")
    np.testing.assert_array_equal(back, data)
    assert tensor._as_gpu() is tensor
    capsule = host.__dlpack__(dl_device=(2, 0))
    np.testing.assert_array_equal(from_dlpack(capsule).cpu(), data)


def test_copies(gpu_runtime, data):
    tensor = late_tensor(gpu_runtime, data, "HW", source="a.jpg")
    copied = tensor._make_copy()
    assert copied.data_ptr() != tensor.data_ptr()
    assert (copied.layout(), copied.source_info(), copied.shape()) == ("HW", "a.jpg", [3, 4])
    np.testing.assert_array_equal(copied.as_cpu(), data)


@pytest.mark.parametrize("non_blocking", [False, True])
def test_copy_to_external(gpu_runtime, data, non_blocking):
    tensor = late_tensor(gpu_runtime, data)
    device = get_device(0)
    stream = gpu_runtime.acquire_stream()
    memory = device.memory.take(data.nbytes, stream)
    target = ctypes.c_void_p(memory.address)
    tensor.copy_to_external(target, ctypes.c_void_p(stream), non_blocking)
    np.testing.assert_array_equal(read_on(gpu_runtime, memory.address, data, stream), data)
    host = np.empty_like(data)
    tensor.copy_to_external(host.ctypes.data)
    np.testing.assert_array_equal(host, data)
    with pytest.raises(errors.ArgumentValueError, match="null"):
        tensor.copy_to_external(0)
    with pytest.raises(errors.ArgumentTypeError, match="c_void_p"):
        tensor.copy_to_external(host)
    gpu_runtime.release_stream(stream)


def test_set_stream(gpu_runtime, data):
    tensor = late_tensor(gpu_runtime, data)
    stream = gpu_runtime.acquire_stream()
    tensor._set_stream(stream)
    assert tensor.stream == stream
    np.testing.assert_array_equal(read_on(gpu_runtime, tensor._address, data, stream), data)
    gpu_runtime.release_stream(stream)


def test_squeezing_and_reinterpreting(gpu_runtime):
    tensor = late_tensor(gpu_runtime, np.zeros((1, 3, 1), np.float32), "HWC")
    assert tensor.squeeze(-1)
    assert (tensor.shape(), tensor.layout()) == ([1, 3], "HW")
    assert tensor.squeeze()
    assert (tensor.shape(), tensor.layout()) == ([3], "W")
    tensor.reinterpret(types.INT32)
    assert np.asarray(tensor.as_cpu()).dtype == np.int32
    with pytest.raises(errors.DataTypeError, match="4 and 8 bytes"):
        tensor.reinterpret(types.INT64)


def test_enumerations_are_not_handed_out(gpu_runtime):
    tensor = late_tensor(gpu_runtime, np.zeros(2, np.int32), dtype=types.INTERP_TYPE)
    for export in (lambda: tensor.__dlpack__(), lambda: tensor.__cuda_array_interface__):
        with pytest.raises(errors.DataTypeError, match="enum types"):
            export()
    assert "INTERP_NN" in str(tensor)


def test_strided_and_odd_data_is_refused(gpu_runtime, data):
    class Strided:
        __cuda_array_interface__ = {  # noqa: RUF012
            "shape": (3, 4),
            "strides": (4, 12),
            "typestr": "<f4",
            "data": (64, False),
            "version": 3,
        }

    with pytest.raises(errors.ShapeError, match=r"Strided data.*cupy.ascontiguousarray"):
        TensorGPU(Strided())
    Strided.__cuda_array_interface__ |= {"strides": None, "mask": data}
    with pytest.raises(errors.ArgumentValueError, match="mask"):
        TensorGPU(Strided())
    Strided.__cuda_array_interface__ |= {"mask": None, "typestr": "<c8"}
    with pytest.raises(errors.DataTypeError, match="complex64"):
        TensorGPU(Strided())
    with pytest.raises(errors.LayoutError):
        TensorGPU(DLPackArray(gpu_runtime, data), "HWC")
    with pytest.raises(errors.ArgumentTypeError, match="TensorCPU"):
        TensorGPU(torch.zeros(3))


def test_other_libraries_refusals_are_told(gpu_runtime, data):
    class NeedsGradient(DLPackArray):
        def __dlpack__(self, **_):
            raise BufferError("tensors that require gradient cannot be exported")

    with pytest.raises(errors.ArgumentTypeError, match=r"NeedsGradient.*require gradient"):
        TensorGPU(NeedsGradient(gpu_runtime, data))


def test_views_of_size_one_axes_count_as_contiguous(gpu_runtime, data):
    array = InterfaceArray(gpu_runtime, data)

    class View:
        @property
        def __cuda_array_interface__(self):
            return array.__cuda_array_interface__ | {"shape": (1, 12), "strides": (4, 4)}

    np.testing.assert_array_equal(TensorGPU(View()).as_cpu(), data.reshape(1, 12))


def test_pickling_says_what_to_do(gpu_runtime, data):
    tensor = late_tensor(gpu_runtime, data)
    for duplicate in (pickle.dumps, copy.copy):
        with pytest.raises(TypeError, match="as_cpu"):
            duplicate(tensor)


def test_printing(gpu_runtime, data):
    tensor = late_tensor(gpu_runtime, data, "HW", source="a.jpg")
    assert repr(tensor) == (
        "TensorGPU(shape=(3, 4), dtype=DALIDataType.FLOAT, "
        'layout="HW", device="gpu", source=\'a.jpg\')'
    )
    assert str(tensor).splitlines()[1] == "  [[ 0.,  1.,  2.,  3.],"
