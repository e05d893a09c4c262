"""Streams of users: kept as long as memory is waited for on them, and no longer."""

from __future__ import annotations

import ctypes
import gc
import weakref

import numpy as np
import pytest
from torch.utils.dlpack import from_dlpack

from headrace.tensors import TensorGPU
from headrace.tensors.gpu import foreign_memory
from headrace.tensors.gpu.device import get_device
from headrace.tensors.gpu.streams import DEFAULT_STREAM, UserStream, noted, stream_number
from tests.support.gpu.foreign import DLPackArray
from tests.support.gpu.late import late_batch, read_on
from tests.support.gpu.libraries import fake_libraries


class Stream:
    """A stream as CuPy has it: destroyed with its last owner."""

    def __init__(self, runtime):
        self.ptr = runtime.new_stream(blocking=False)
        weakref.finalize(self, runtime.destroy_stream, self.ptr)


@pytest.fixture
def data():
    return np.arange(12, dtype=np.float32).reshape(3, 4)


def is_gone(stream):
    gc.collect()
    return stream() is None


def test_a_stream_that_reads_memory_of_the_engine(emulated_gpu, data):
    pool = get_device(0).memory
    for _ in range(3):
        batch = late_batch(emulated_gpu, [data])
        stream = Stream(emulated_gpu)
        shared = from_dlpack(batch[0].__dlpack__(stream=stream))
        np.testing.assert_array_equal(
            read_on(emulated_gpu, shared.data_ptr(), data, stream.ptr), data
        )
        stream = weakref.ref(stream)
        assert not is_gone(stream)
        del batch, shared
        assert not is_gone(stream), "an event of it will be asked for"
        pool.take(data.nbytes, DEFAULT_STREAM)
        assert is_gone(stream)


def test_a_stream_that_writes_memory_of_others(emulated_gpu, data):
    array, stream = DLPackArray(emulated_gpu, data), Stream(emulated_gpu)
    tensor = TensorGPU(array, stream=stream)
    stream = weakref.ref(stream)
    np.testing.assert_array_equal(tensor.as_cpu(), data)
    assert not is_gone(stream)
    del tensor, array
    for _ in range(5):
        foreign_memory.release_finished()
    assert is_gone(stream)


def test_a_stream_that_a_tensor_was_given(emulated_gpu, data):
    tensor, stream = late_batch(emulated_gpu, [data])[0], Stream(emulated_gpu)
    tensor._set_stream(stream)
    assert tensor.stream == stream.ptr
    stream = weakref.ref(stream)
    assert not is_gone(stream)
    np.testing.assert_array_equal(tensor.as_cpu(), data)
    del tensor
    get_device(0).memory.take(data.nbytes, DEFAULT_STREAM)
    assert is_gone(stream)


def test_numbers_of_streams(emulated_gpu, monkeypatch):
    ours = fake_libraries(emulated_gpu, monkeypatch)
    number = stream_number(ours[0])
    assert isinstance(number, UserStream), "it is the current one of CuPy, which so keeps it"
    assert number.owner.ptr == ours[0]
    assert type(stream_number(ctypes.c_void_p(ours[1]))) is int, "nobody knows whose it is"
    assert stream_number(number) is number
    assert [stream_number(each) for each in (None, 0, 1, 2)] == [1, 1, 1, 2]
    for stream in ours:
        emulated_gpu.release_stream(stream)


def test_of_equal_numbers_the_one_that_keeps_its_stream_stays():
    kept = UserStream.of(7, object())
    assert noted((), 7) == (7,)
    assert noted((5, 7), 7) == (5, 7)
    for found in (noted((5, 7), kept), noted((5, kept), 7), noted((5, kept), kept)):
        assert found == (5, 7)
        assert found[1] is kept
