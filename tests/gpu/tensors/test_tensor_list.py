"""`TensorListGPU`: batches in one piece and scattered ones, dense and ragged."""

from __future__ import annotations

import ctypes
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from headrace import contact_sheet, errors, types
from headrace.tensors import TensorCPU, TensorGPU, TensorListCPU, TensorListGPU
from headrace.tensors.gpu.device import get_device
from headrace.tensors.interop import is_dlpack_capsule
from tests.support.gpu.foreign import DLPackArray, InterfaceArray
from tests.support.gpu.late import late_batch, read_on


@pytest.fixture
def data():
    return np.arange(24, dtype=np.float32).reshape(2, 3, 4)


@pytest.fixture
def ragged():
    return [np.arange(n * 3, dtype=np.int16).reshape(n, 3) for n in (2, 0, 5, 1)]


def assert_rows(batch, rows):
    found = batch.as_cpu()
    assert len(found) == len(rows)
    for sample, row in zip(found, rows, strict=True):
        np.testing.assert_array_equal(sample, row)


def test_of_the_engine(gpu_runtime, data):
    batch = late_batch(gpu_runtime, list(data), "HW", sources=["a", "b"])
    assert (len(batch), batch.shape(), batch.ndim()) == (2, [(3, 4)] * 2, 2)
    assert (batch.dtype, batch.layout(), batch.device_id()) == (types.FLOAT, "HW", 0)
    assert batch.source_info() == ["a", "b"]
    assert batch.is_dense_tensor()
    assert batch.data_ptr() == batch[0].data_ptr()
    assert batch[1].data_ptr() == batch.data_ptr() + 48
    assert_rows(batch, data)
    back = batch.as_cpu()
    assert (back.layout(), back.source_info()) == ("HW", ["a", "b"])
    assert back.is_dense_tensor()


def test_ragged_ones(gpu_runtime, ragged):
    batch = late_batch(gpu_runtime, ragged, "HW")
    assert not batch.is_dense_tensor()
    assert batch.shape() == [row.shape for row in ragged]
    assert_rows(batch, ragged)
    assert_rows(batch[1:], ragged[1:])
    with pytest.raises(errors.UsageError, match="do not follow one another"):
        batch.data_ptr()
    with pytest.raises(errors.ShapeError, match="same shape"):
        batch.as_tensor()
    tensor = batch.as_reshaped_tensor([8, 3])
    assert tensor.layout() == ""
    np.testing.assert_array_equal(tensor.as_cpu(), np.concatenate(ragged))
    with pytest.raises(errors.ShapeError, match="same volume"):
        batch.as_reshaped_tensor([5, 5])


def test_samples_and_slices(gpu_runtime, data):
    batch = late_batch(gpu_runtime, list(data) * 2, "HW", sources=list("abcd"))
    last = batch[-1]
    assert isinstance(last, TensorGPU)
    assert (last.layout(), last.source_info(), last.shape()) == ("HW", "d", [3, 4])
    np.testing.assert_array_equal(last.as_cpu(), data[1])
    np.testing.assert_array_equal(batch.at(2).as_cpu(), data[0])
    for part in (slice(1, 3), slice(None, None, -1), slice(0, 0), slice(None, None, 3)):
        found = batch[part]
        assert isinstance(found, TensorListGPU)
        assert found.source_info() == list("abcd")[part]
        assert_rows(found, (list(data) * 2)[part])
    assert [s.source_info() for s in batch] == list("abcd")
    for wrong in (4, -5):
        with pytest.raises(IndexError):
            batch[wrong]
    with pytest.raises(errors.SampleIndexError):
        batch.at(-1)
    with pytest.raises(errors.ArgumentTypeError):
        batch["a"]


def test_as_one_tensor(gpu_runtime, data):
    batch = late_batch(gpu_runtime, list(data), "HW")
    tensor = batch.as_tensor()
    assert (tensor.layout(), tensor.shape()) == ("NHW", [2, 3, 4])
    assert tensor.data_ptr() == batch.data_ptr()
    np.testing.assert_array_equal(tensor.as_cpu(), data)
    flat = batch.as_reshaped_tensor((6, 4, 1))
    assert flat.data_ptr() == batch.data_ptr()
    assert flat.layout() == "NHW"
    apart = batch[::-1]
    assert not apart.is_dense_tensor()
    copied = apart.as_tensor()
    assert copied.data_ptr() != batch.data_ptr()
    np.testing.assert_array_equal(copied.as_cpu(), data[::-1])


def test_empty_ones(gpu_runtime):
    for batch in (TensorListGPU(), TensorListGPU([]), TensorListGPU([], "HW")):
        assert (len(batch), batch.dtype, batch.shape()) == (0, types.NO_TYPE, [])
        assert len(batch.as_cpu()) == 0
        with pytest.raises(errors.UsageError, match="without a type"):
            batch.as_tensor()
    assert batch.layout() == "HW"
    typed = late_batch(gpu_runtime, [np.zeros((3, 4))], "HW")[:0]
    assert typed.as_tensor().shape() == [0, 3, 4]
    assert typed[:].as_tensor().shape() == [0, 3, 4]
    np.testing.assert_array_equal(typed.as_tensor().as_cpu(), np.empty((0, 3, 4)))
    assert len(typed.as_cpu()) == 0
    ragged = late_batch(gpu_runtime, [np.zeros((n, 4)) for n in (1, 2)])[:0]
    assert ragged.as_tensor().shape() == [0, 0, 0]


@pytest.mark.parametrize("kind", [DLPackArray, InterfaceArray])
def test_of_one_array(gpu_runtime, data, kind):
    array = kind(gpu_runtime, data)
    batch = TensorListGPU(array, "HW")
    assert batch.data_ptr() == array.address
    assert batch.is_dense_tensor()
    assert_rows(batch, data)
    scalars = TensorListGPU(kind(gpu_runtime, np.arange(3.0)))
    assert scalars.shape() == [(), (), ()]
    assert_rows(scalars, [0, 1, 2])
    with pytest.raises(errors.ShapeError, match="scalar"):
        TensorListGPU(kind(gpu_runtime, np.float32(1)))


@pytest.mark.parametrize("contiguous", [True, False])
def test_of_a_list(gpu_runtime, ragged, contiguous):
    arrays = [DLPackArray(gpu_runtime, row) for row in ragged]
    samples = [TensorGPU(arrays[0], "HW"), *arrays[1:]]
    batch = TensorListGPU(samples, contiguous=contiguous)
    assert batch.layout() == "HW"
    assert (batch[0].data_ptr() == arrays[0].address) is not contiguous
    assert_rows(batch, ragged)


def test_a_list_waits_for_all_its_samples(gpu_runtime, data):
    """Each sample is written on another stream."""
    samples = [late_batch(gpu_runtime, [row])[0] for row in data]
    batch = TensorListGPU(samples, contiguous=False)
    for number, row in enumerate(data):
        reader = gpu_runtime.acquire_stream()
        tensor = batch[number]
        tensor._access.grant(reader)
        seen = read_on(gpu_runtime, tensor._address, row, reader)
        np.testing.assert_array_equal(seen, row)
        gpu_runtime.release_stream(reader)
    assert TensorListGPU([TensorCPU(r)._as_gpu() for r in data], contiguous=False).stream is None


def test_lists_that_do_not_fit_together(gpu_runtime, data):
    def tensor(values, layout=None):
        return TensorGPU(DLPackArray(gpu_runtime, np.asarray(values)), layout)

    with pytest.raises(errors.DataTypeError, match="position 1 has type 'FLOAT64'"):
        TensorListGPU([tensor(data[0]), tensor([1.0])])
    with pytest.raises(errors.ArgumentTypeError, match="number of axes"):
        TensorListGPU([tensor(data[0]), tensor(data)])
    with pytest.raises(errors.ArgumentTypeError, match="layout"):
        TensorListGPU([tensor(data[0], "HW"), tensor(data[0], "WH")])
    with pytest.raises(errors.ArgumentTypeError, match="Object at position 1 cannot be converted"):
        TensorListGPU([tensor(data[0]), data[0]])


def test_samples_on_two_gpus(emulated_gpu, data):
    one = TensorCPU(data)._as_gpu(0)
    other = TensorCPU(data)._as_gpu(1)
    assert (one.device_id(), other.device_id()) == (0, 1)
    with pytest.raises(errors.ArgumentTypeError, match="sample 1 is on GPU 1"):
        TensorListGPU([one, other])


def test_copies(gpu_runtime, data, ragged):
    for rows in (list(data), ragged):
        batch = late_batch(gpu_runtime, rows, "HW")
        copied = batch._make_copy()
        assert copied[0].data_ptr() != batch[0].data_ptr()
        assert copied.layout() == "HW"
        assert_rows(copied, rows)
    same = TensorListGPU(batch, "WH")
    assert same[0].data_ptr() == batch[0].data_ptr()
    assert same.layout() == "WH"


@pytest.mark.parametrize("non_blocking", [True, False])
def test_copy_to_external(gpu_runtime, ragged, non_blocking):
    batch = late_batch(gpu_runtime, ragged)
    whole = np.concatenate(ragged)
    stream = gpu_runtime.acquire_stream()
    memory = get_device(0).memory.take(whole.nbytes, stream)
    batch.copy_to_external(ctypes.c_void_p(memory.address), stream, non_blocking)
    np.testing.assert_array_equal(read_on(gpu_runtime, memory.address, whole, stream), whole)
    gpu_runtime.release_stream(stream)


def test_uploading(gpu_runtime, data, ragged):
    for host in (TensorListCPU(data, "HW"), TensorListCPU(ragged, "HW")):
        batch = host._as_gpu()
        assert (batch.layout(), batch.dtype) == ("HW", host.dtype)
        assert_rows(batch, [np.asarray(row) for row in host])
    assert len(TensorListCPU([])._as_gpu()) == 0
    assert batch._as_gpu() is batch


def test_broadcasting(gpu_runtime, data):
    tensor = TensorGPU(DLPackArray(gpu_runtime, data[0]), "HW")
    batch = TensorListGPU.broadcast(tensor, 3)
    assert {sample.data_ptr() for sample in batch} == {tensor.data_ptr()}
    assert not batch.is_dense_tensor()
    assert_rows(batch, [data[0]] * 3)
    np.testing.assert_array_equal(batch.as_tensor().as_cpu(), np.stack([data[0]] * 3))
    assert len(TensorListGPU.broadcast(tensor, 0)) == 0
    with pytest.raises(errors.ArgumentValueError):
        TensorListGPU.broadcast(tensor, -1)


def test_dlpack_lists(gpu_runtime, ragged):
    arrays = [DLPackArray(gpu_runtime, row) for row in ragged]
    stream = gpu_runtime.acquire_stream()
    batch = TensorListGPU.from_dlpack_list(arrays, "HW", stream)
    assert [array.asked for array in arrays] == [[stream]] * 4
    assert batch[2].data_ptr() == arrays[2].address
    assert_rows(batch, ragged)
    assert_rows(TensorListGPU.from_dlpack_list(arrays, contiguous=True), ragged)
    with pytest.raises(errors.ArgumentTypeError, match=r"Sample 0.*DLPack"):
        TensorListGPU.from_dlpack_list([3])
    gpu_runtime.release_stream(stream)


def test_a_batch_is_taken_through_dlpack_as_one_tensor(gpu_runtime, data, ragged):
    batch = late_batch(gpu_runtime, list(data), "HW")
    assert batch.__dlpack_device__() == batch.as_tensor().__dlpack_device__()
    assert is_dlpack_capsule(batch.__dlpack__(stream=1))
    with pytest.raises(errors.ShapeError, match="do not all have the same shape"):
        late_batch(gpu_runtime, ragged, "HW").__dlpack_device__()


def test_changes_in_place(gpu_runtime, data):
    batch = late_batch(gpu_runtime, list(data), "HW")
    batch.set_layout("WH")
    batch.reinterpret(types.INT32)
    assert np.asarray(batch.as_cpu().as_array()).dtype == np.int32
    assert batch.as_tensor().layout() == "NWH"
    with pytest.raises(errors.LayoutError):
        batch.set_layout("HWC")
    batch._set_stream(None)
    assert batch.stream == 1
    batch.reset()
    assert (len(batch), batch.dtype, batch.layout()) == (0, types.NO_TYPE, "")


def test_printing_and_pickling(gpu_runtime, data):
    batch = late_batch(gpu_runtime, list(data), "HW")
    assert repr(batch) == (
        "TensorListGPU(num_samples=2, shape=[(3, 4)] * 2, dtype=DALIDataType.FLOAT, "
        'layout="HW", device="gpu")'
    )
    assert "[1] [[12., 13., 14., 15.]," in str(batch)
    with pytest.raises(TypeError, match="as_cpu"):
        pickle.dumps(batch)


def test_any_thread_may_work_with_batches(gpu_runtime, data):
    """The engine's own threads are the only ones that have made the GPU theirs."""
    batch = late_batch(gpu_runtime, list(data), "HW")
    others = [late_batch(gpu_runtime, list(data)) for _ in range(2)]
    array = DLPackArray(gpu_runtime, data)
    address = get_device(0).memory.take(data.nbytes, 1)

    def work():
        np.testing.assert_array_equal(batch.as_cpu().as_array(), data)
        np.testing.assert_array_equal(batch._make_copy()[::-1].as_tensor().as_cpu(), data[::-1])
        np.testing.assert_array_equal(TensorListCPU(data)._as_gpu().as_cpu().as_array(), data)
        np.testing.assert_array_equal(TensorListGPU(array).as_cpu().as_array(), data)
        collected = TensorListGPU([other[0] for other in others]).as_cpu()
        np.testing.assert_array_equal(collected.as_array(), [data[0], data[0]])
        tensor = batch.as_tensor()
        tensor.copy_to_external(address.address)
        tensor._set_stream(None)
        assert tensor.__cuda_array_interface__["shape"] == (2, 3, 4)
        assert tensor.__dlpack__(stream=2, max_version=(1, 0)) is not None
        return True

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(work).result()


def test_looking_at_a_batch(gpu_runtime):
    images = [np.full((5 + k, 6, 3), 30 * k, np.uint8) for k in range(8)]
    batch = late_batch(gpu_runtime, images, "HWC")
    np.testing.assert_array_equal(
        contact_sheet(batch, size=8), contact_sheet(TensorListCPU(images, "HWC"), size=8)
    )
    np.testing.assert_array_equal(contact_sheet(batch[3], size=8), contact_sheet(images[3], size=8))
    html = batch._repr_html_()
    assert "(12, 6, 3)" in html
    assert "210 .. 210, mean 210" in html
