"""Lists of other libraries' arrays: read at once, waited for once, checked as one by one."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import headrace.kernels.gpu.strided_copy  # noqa: F401 - installs the copy that `Queue` offers
from headrace import errors
from headrace.tensors import TensorGPU, TensorListGPU
from headrace.tensors.gpu import foreign_memory
from headrace.tensors.gpu.foreign_list import all_on_gpu
from headrace.tensors.gpu.runtime import get_runtime
from tests.support.gpu.foreign import DLPackArray, InterfaceArray, OldDLPackArray
from tests.support.gpu.libraries import CupyArray, PyTorchTensor, fake_libraries

LIBRARIES = [CupyArray, PyTorchTensor]
PROTOCOLS = [DLPackArray, OldDLPackArray, InterfaceArray]
COUNT = 12


@pytest.fixture(autouse=True)
def streams(emulated_gpu, monkeypatch):
    """The current streams of CuPy and PyTorch."""
    found = fake_libraries(emulated_gpu, monkeypatch)
    yield dict(zip(LIBRARIES, found, strict=True))
    gc.collect(1)
    for stream in found:
        emulated_gpu.release_stream(stream)


def rows(dtype=np.float32, ndim=2):
    return [np.full((1 + i % 3, *(4,) * (ndim - 1)), i, dtype) for i in range(COUNT)]


def arrays(runtime, kind, values=None):
    return [kind(runtime, row) for row in (rows() if values is None else values)]


def assert_rows(batch, expected):
    for found, row in zip(batch.as_cpu(), expected, strict=True):
        np.testing.assert_array_equal(found, row)


@pytest.mark.parametrize("kind", LIBRARIES + PROTOCOLS)
@pytest.mark.parametrize("sequence", [list, tuple])
def test_values(emulated_gpu, kind, sequence):
    given = arrays(emulated_gpu, kind)
    batch = TensorListGPU(sequence(given), "HW", contiguous=False)
    assert batch._batch.pointers.tolist() == [array.address for array in given]
    assert len(batch._access.owners) == 1
    assert batch.shape() == [row.shape for row in rows()]
    assert batch.layout() == "HW"
    assert_rows(batch, rows())


@pytest.mark.parametrize("kind", LIBRARIES)
def test_libraries_are_not_asked_by_a_protocol(emulated_gpu, kind, streams):
    given = arrays(emulated_gpu, kind)
    batch = TensorListGPU(given, contiguous=False)
    one = TensorGPU(given[3])
    assert all(array.asked == [] for array in given)
    assert batch.stream == one.stream == streams[kind]
    assert_rows(batch, rows())
    np.testing.assert_array_equal(one.as_cpu(), rows()[3])


@pytest.mark.sweep
@pytest.mark.parametrize("kind", LIBRARIES + PROTOCOLS)
@pytest.mark.parametrize(
    "dtype", ["?", "u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", "f2", "f4", "f8"]
)
def test_types(emulated_gpu, kind, dtype):
    given = rows(dtype)
    found = all_on_gpu(arrays(emulated_gpu, kind, given))
    assert found is not None
    assert found.dtype == np.dtype(dtype)


@pytest.mark.parametrize("kind", LIBRARIES + PROTOCOLS)
def test_numbers_and_arrays_of_nothing(emulated_gpu, kind):
    numbers = [np.float32(i) for i in range(COUNT)]
    given = TensorListGPU(arrays(emulated_gpu, kind, map(np.asarray, numbers)), contiguous=False)
    assert given._batch.shapes.shape == (COUNT, 0)
    assert_rows(given, numbers)
    empty = [np.zeros((i, 0, 3), np.uint8) for i in range(COUNT)]
    given = TensorListGPU(arrays(emulated_gpu, kind, empty), contiguous=False)
    assert given.shape() == [row.shape for row in empty]


@pytest.mark.parametrize("kind", LIBRARIES + PROTOCOLS)
def test_a_stream_that_the_user_names_comes_behind(emulated_gpu, kind):
    named = emulated_gpu.acquire_stream()
    given = arrays(emulated_gpu, kind)
    if kind is InterfaceArray:  # here the user's word counts, and not the array's
        for array in given:
            emulated_gpu.wait(named, emulated_gpu.record(array.stream))
    batch = TensorListGPU(given, contiguous=False, stream=named)
    assert batch.stream == named
    assert_rows(batch, rows())
    emulated_gpu.synchronize(named)
    emulated_gpu.release_stream(named)


@pytest.mark.parametrize("told", ["one", "several", "none", "old"])
def test_streams_of_interfaces(emulated_gpu, told):
    class Array(InterfaceArray):
        @property
        def __cuda_array_interface__(self):
            found = super().__cuda_array_interface__
            if told == "none":
                emulated_gpu.synchronize(self.stream)
                found["stream"] = None
            elif told == "one":
                emulated_gpu.wait(given[0].stream, emulated_gpu.record(self.stream))
                found["stream"] = given[0].stream
            return found

    given = [Array(emulated_gpu, r, interface_version=2 if told == "old" else 3) for r in rows()]
    found = all_on_gpu(given)
    own = frozenset(array.stream for array in given)
    expected = {"none": frozenset(), "one": {given[0].stream}, "old": {1}, "several": own}
    assert found.writers == expected[told]
    assert (found.access.event is None) is (told == "none")
    assert_rows(TensorListGPU(given, contiguous=False), rows())


@pytest.mark.parametrize("kind", LIBRARIES + PROTOCOLS)
def test_memory_is_kept_until_its_readers_are_through(emulated_gpu, kind):
    """As by PyTorch's allocator, memory is used anew the moment it is given back."""
    given = arrays(emulated_gpu, kind)
    alive = [weakref.ref(array) for array in given]
    batch = TensorListGPU(given, contiguous=False)
    del given
    gc.collect()
    assert all(ref() is not None for ref in alive)
    copied = batch._make_copy()
    del batch
    gc.collect()
    assert all(ref() is not None for ref in alive), "the copy has not run yet"
    assert_rows(copied, rows())


def test_tensors_that_are_given_other_memory(emulated_gpu, monkeypatch):
    """PyTorch's storage is kept, and not the tensor."""
    given = arrays(emulated_gpu, PyTorchTensor)
    storages = [array.untyped_storage() for array in given]
    for array, storage in zip(given, storages, strict=True):
        monkeypatch.setattr(array, "untyped_storage", lambda s=storage: s, raising=False)
    batch = TensorListGPU(given, contiguous=False)
    owner = batch._access.owners[0]._owner
    assert all(a is b for a, b in zip(owner, storages, strict=True))


@pytest.mark.parametrize("kind", [*LIBRARIES, DLPackArray, InterfaceArray])
def test_many_samples_are_copied_by_one_kernel(emulated_gpu, kind):
    given = arrays(emulated_gpu, kind)
    emulated_gpu.launches.clear()
    batch = TensorListGPU(given)
    assert len(emulated_gpu.launches) == 1
    for array in given:  # what comes behind the copy does not matter
        emulated_gpu.wait(array.stream, batch._access.event)
        emulated_gpu.fill(array.address, 0, array.values.nbytes, array.stream)
        emulated_gpu.synchronize(array.stream)
    del given
    assert_rows(batch, rows())
    assert batch._batch.pointers[0] % 64 == 0


@pytest.fixture
def copied_bytes(emulated_gpu, monkeypatch):
    """Sizes of the copies that are not kernels."""
    sizes = []
    copy = emulated_gpu.copy

    def logged(target, source, size_bytes, stream, **how):
        sizes.append(size_bytes)
        copy(target, source, size_bytes, stream, **how)

    monkeypatch.setattr(emulated_gpu, "copy", logged)
    return sizes


@pytest.mark.parametrize("count", [3, COUNT])
def test_neighbours_are_pieces_of_memory_of_their_own(emulated_gpu, copied_bytes, count):
    """CUDA refuses copies from one allocation into the next, even if there is no gap."""
    values = np.arange(count * 6, dtype=np.int32).reshape(count, 2, 3)
    whole = CupyArray(emulated_gpu, values)
    given = [CupyArray(emulated_gpu, row) for row in values]
    for k, array in enumerate(given):
        array.data.ptr = whole.address + 24 * k
    batch = TensorListGPU(given, contiguous=False)
    assert not batch.is_dense_tensor()
    assert batch._whole_memory() is None
    with pytest.raises(errors.UsageError, match="do not follow one another"):
        batch.data_ptr()
    for half in (batch, batch[: count // 2 + 1]):
        copied_bytes.clear()
        expected = values[: len(half)]
        np.testing.assert_array_equal(half.as_cpu().as_array(), expected)
        together = half.as_tensor()
        np.testing.assert_array_equal(
            half.as_reshaped_tensor((expected.size,)).as_cpu(), expected.ravel()
        )
        np.testing.assert_array_equal(half._make_copy().as_cpu().as_array(), expected)
        target = np.empty_like(expected)
        half.copy_to_external(target.ctypes.data)
        np.testing.assert_array_equal(target, expected)
        from_samples = sum(size == 24 for size in copied_bytes)
        assert from_samples >= 2 * len(half)
        np.testing.assert_array_equal(together.as_cpu(), expected)


def test_samples_of_one_array_are_one_piece(emulated_gpu, copied_bytes):
    values = np.arange(COUNT * 6, dtype=np.int32).reshape(COUNT, 2, 3)
    for data in (CupyArray(emulated_gpu, values), DLPackArray(emulated_gpu, values)):
        copied_bytes.clear()
        batch = TensorListGPU(data)
        assert batch.is_dense_tensor()
        np.testing.assert_array_equal(batch.as_cpu().as_array(), values)
        assert copied_bytes == [values.nbytes]


# What is not alike is looked at one by one, and the messages are those of single samples.


@pytest.mark.parametrize("kind", [*LIBRARIES, DLPackArray, InterfaceArray])
def test_other_types(emulated_gpu, kind):
    values = [*rows()[:3], rows(np.float64)[3]]
    with pytest.raises(
        errors.DataTypeError, match="position 3 has type 'FLOAT64' expected to have type 'FLOAT'"
    ):
        TensorListGPU(arrays(emulated_gpu, kind, values))


@pytest.mark.parametrize("kind", [*LIBRARIES, DLPackArray, InterfaceArray])
def test_other_numbers_of_axes(emulated_gpu, kind):
    values = [*rows()[:3], rows(ndim=3)[3]]
    with pytest.raises(errors.ArgumentTypeError, match="sample 3 has 3, sample 0 has 2"):
        TensorListGPU(arrays(emulated_gpu, kind, values))


@pytest.mark.parametrize("kind", [*LIBRARIES, DLPackArray])
def test_other_gpus(emulated_gpu, kind):
    given = arrays(emulated_gpu, kind)
    other = get_runtime(1)
    other.activate()
    given[2] = kind(other, rows()[2])
    with pytest.raises(errors.ArgumentTypeError, match="sample 2 is on GPU 1, sample 0 on GPU 0"):
        TensorListGPU(given)
    other.check()


@pytest.mark.parametrize("kind", [*LIBRARIES, *PROTOCOLS])
def test_a_gpu_that_is_not_current(emulated_gpu, kind):
    """The default stream's number means that of the current GPU."""
    other = get_runtime(1)
    with other.active():
        given = arrays(other, kind)
    single = TensorGPU(given[0], device_id=1)
    assert single.device_id() == 1
    np.testing.assert_array_equal(single.as_cpu(), rows()[0])
    batch = TensorListGPU(given, device_id=1)
    assert_rows(batch, rows())
    assert_rows(batch._make_copy(), rows())
    del given, batch, single
    gc.collect()
    foreign_memory.release_finished()  # asks the streams of its readers for events
    other.check()


@pytest.mark.parametrize("kind", LIBRARIES)
def test_gaps(emulated_gpu, kind):
    given = arrays(emulated_gpu, kind)
    given[5] = kind(emulated_gpu, rows()[5], transposed=True)
    for data in (given, given[5]):
        with pytest.raises(errors.ShapeError, match=r"\(4, 3\) has strides \(4, 16\)"):
            TensorListGPU(data, contiguous=False)


def test_gaps_behind_protocols(emulated_gpu):
    class Gaps(InterfaceArray):
        @property
        def __cuda_array_interface__(self):
            shape = self.values.shape
            return super().__cuda_array_interface__ | {"shape": shape[::-1], "strides": (4, 16)}

    class Told(InterfaceArray):
        @property
        def __cuda_array_interface__(self):
            return super().__cuda_array_interface__ | {"strides": self.values.strides}

    assert_rows(TensorListGPU(arrays(emulated_gpu, Told), contiguous=False), rows())
    with pytest.raises(errors.ShapeError, match=r"\(4, 2\) has strides \(4, 16\)"):
        TensorListGPU(arrays(emulated_gpu, Gaps, rows()[1:]), contiguous=False)


def test_masks(emulated_gpu):
    class Masked(InterfaceArray):
        @property
        def __cuda_array_interface__(self):
            return super().__cuda_array_interface__ | {"mask": self}

    with pytest.raises(errors.ArgumentValueError, match="mask"):
        TensorListGPU(arrays(emulated_gpu, Masked))


@pytest.mark.parametrize("kind", [*LIBRARIES, DLPackArray, InterfaceArray])
def test_unknown_types(emulated_gpu, kind):
    values = [np.zeros((2, 3), np.complex64) for _ in range(3)]
    with pytest.raises(errors.DataTypeError, match="not supported"):
        TensorListGPU(arrays(emulated_gpu, kind, values))


def test_tensors_that_need_a_gradient(emulated_gpu):
    given = arrays(emulated_gpu, PyTorchTensor)
    given[4].requires_grad = True
    with pytest.raises(errors.ArgumentTypeError, match=r"position 4 .*gradient"):
        TensorListGPU(given)


def test_tensors_on_the_host(emulated_gpu):
    given = arrays(emulated_gpu, PyTorchTensor)
    for array in given:
        array.is_cuda, array.get_device = False, lambda: -1
        array.__class__ = type("Tensor", (PyTorchTensor,), {"__dlpack_device__": lambda _: (1, 0)})
    assert all_on_gpu(given) is None
    with pytest.raises(errors.ArgumentTypeError, match="no data on a GPU"):
        TensorListGPU(given)


@pytest.mark.parametrize("kind", LIBRARIES)
def test_arrays_of_a_subclass_speak_for_themselves(emulated_gpu, kind):
    class Own(kind):
        pass

    given = arrays(emulated_gpu, Own)
    assert_rows(TensorListGPU(given, contiguous=False), rows())
    assert all(len(array.asked) == 1 for array in given)


def test_arrays_of_several_libraries(emulated_gpu):
    kinds = [*LIBRARIES, DLPackArray, InterfaceArray]
    given = [kinds[i % 4](emulated_gpu, row) for i, row in enumerate(rows())]
    assert all_on_gpu(given) is None
    assert_rows(TensorListGPU(given, contiguous=False), rows())


def test_own_tensors_keep_their_layouts(emulated_gpu):
    given = [TensorGPU(array, "HW") for array in arrays(emulated_gpu, CupyArray)]
    assert all_on_gpu(given) is None
    assert TensorListGPU(given).layout() == "HW"


def test_an_error_in_the_middle_frees_what_was_taken(emulated_gpu):
    class Refusing(DLPackArray):
        refuses = False

        def __dlpack__(self, **how):
            if self.refuses:
                raise BufferError("not this one")
            return super().__dlpack__(**how)

    given = arrays(emulated_gpu, Refusing)
    given[7].refuses = True
    with pytest.raises(errors.ArgumentTypeError, match=r"position 7 .*not this one"):
        TensorListGPU(given)
    alive = [weakref.ref(array) for array in given]
    del given
    gc.collect()
    assert all(ref() is None for ref in alive)
