"""Batches that lie in page-locked memory when they are fed are uploaded from where they are."""

from __future__ import annotations

import ctypes
import gc

import numpy as np
import pytest

import headrace
from headrace import Pipeline, errors, fn
from headrace.experimental import dynamic as ndd
from headrace.kernels.gpu import transfer
from headrace.tensors.gpu.device import get_device
from tests.support.gpu.runtime import EmulatedRuntime

SHAPE = (4, 50, 40)
ROW_BYTES = 1500


@pytest.fixture(autouse=True)
def own_context(gpu_runtime):
    with ndd.EvalContext(num_threads=2, device_id=0):
        yield


@pytest.fixture
def lent(gpu_runtime, monkeypatch):
    """Page-locked memory of somebody else, as of PyTorch."""
    addresses = []
    monkeypatch.setattr(transfer, "_LEAST_COPY_BYTES", ROW_BYTES)

    def make(values):
        address = gpu_runtime.allocate_pinned(values.nbytes)
        addresses.append(address)
        raw = (ctypes.c_ubyte * values.nbytes).from_address(address)
        array = np.ndarray(values.shape, values.dtype, raw)
        array[...] = values
        return array

    yield make
    gc.collect()
    if isinstance(gpu_runtime, EmulatedRuntime):
        gpu_runtime.check()
    for address in addresses:
        gpu_runtime.free_pinned(address)


@pytest.fixture
def read(emulated_gpu, monkeypatch):
    """Addresses of the page-locked memory that copies of more than descriptors read."""
    found = []
    copy = emulated_gpu.copy

    def note(target, source, size_bytes, stream, **how):
        if size_bytes >= ROW_BYTES and emulated_gpu.is_page_locked(source):
            found.append(source)
        copy(target, source, size_bytes, stream, **how)

    monkeypatch.setattr(emulated_gpu, "copy", note)
    return found


def values(k):
    return np.full(SHAPE, k, np.uint8) + np.arange(4, dtype=np.uint8)[:, None, None] * 50


def pipeline(source=None, *, device="gpu", **arguments):
    pipe = Pipeline(4, 2, 0, prefetch_queue_depth=2)
    with pipe:
        x = fn.external_source(source, no_copy=True, device=device, name="x", **arguments)
        pipe.set_outputs(x.gpu())
    return pipe


@pytest.mark.parametrize("device", ["cpu", "gpu"])
@pytest.mark.parametrize("make", [np.asarray, list])
def test_a_source_takes_new_memory_for_each_batch(emulated_gpu, read, device, make):
    """It is used again, but not before the upload, which is late, has read it."""
    given = []

    def source(k):
        array = headrace.empty_pinned(SHAPE, np.uint8)
        array[...] = values(k)
        given.append(array.ctypes.data)
        return make(array)

    made = get_device(0).pinned.stats().buffers_made
    pipe = pipeline(source, device=device)
    outputs = []
    for k in range(20):
        (out,) = pipe.run()
        outputs.append((k, out))
        if len(outputs) == 3:
            for number, batch in outputs:
                np.testing.assert_array_equal(batch.as_cpu().as_array(), values(number))
            outputs.clear()
    assert read[:20] == given[:20], "uploaded from where they are"
    assert get_device(0).pinned.stats().buffers_made - made < 12
    assert len(set(given)) < 12


@pytest.mark.parametrize("device", ["cpu", "gpu"])
@pytest.mark.parametrize("make", [np.asarray, list])
def test_memory_of_others(read, lent, device, make):
    arrays = [lent(values(k)) for k in range(6)]
    pipe = pipeline(lambda k: make(arrays[k]), device=device)
    for k in range(4):
        np.testing.assert_array_equal(pipe.run()[0].as_cpu().as_array(), values(k))
    assert read[:4] == [array.ctypes.data for array in arrays[:4]]


def test_samples_of_many_shapes_in_memory_of_others(read, lent):
    rows = [[lent(row[: 50 - i]) for i, row in enumerate(values(k))] for k in range(6)]
    pipe = pipeline(lambda k: rows[k])
    for k in range(4):
        out = pipe.run()[0].as_cpu()
        for found, row in zip(out, rows[k], strict=True):
            np.testing.assert_array_equal(np.asarray(found), row)
    assert read[:16] == [row.ctypes.data for batch in rows[:4] for row in batch]


def test_some_of_the_samples_are_not_page_locked(read, lent):
    rows = [lent(values(0)[0]), np.copy(values(0)[1]), lent(values(0)[2])]
    pipe = pipeline(lambda: rows)
    for _ in range(3):
        for found, row in zip(pipe.run()[0].as_cpu(), rows, strict=True):
            np.testing.assert_array_equal(np.asarray(found), row)
    assert not {row.ctypes.data for row in rows} & set(read)


def test_small_samples_are_copied_by_the_host(read, lent, monkeypatch):
    monkeypatch.setattr(transfer, "_LEAST_COPY_BYTES", 1 << 15)
    rows = [lent(row) for row in values(0)]
    pipe = pipeline(lambda: rows)
    np.testing.assert_array_equal(pipe.run()[0].as_cpu().as_array(), values(0))
    assert not {row.ctypes.data for row in rows} & set(read)


def test_without_no_copy_the_source_may_write_there_again(gpu_runtime, lent):
    array = lent(values(0))

    def source(k):
        array[...] = values(k)
        return array

    pipe = Pipeline(4, 2, 0, prefetch_queue_depth=3)
    with pipe:
        pipe.set_outputs(fn.external_source(source, device="gpu"))
    outputs = [pipe.run()[0] for _ in range(4)]
    for k, out in enumerate(outputs):
        np.testing.assert_array_equal(out.as_cpu().as_array(), values(k))


@pytest.mark.parametrize("make", [ndd.as_tensor, ndd.as_batch])
def test_in_dynamic_mode_the_owner_may_write_there_when_a_call_returns(
    emulated_gpu, read, lent, make
):
    array = lent(values(1))
    found = make(array).gpu()
    array[...] = 0
    assert read == [array.ctypes.data]
    np.testing.assert_array_equal(np.asarray(found.cpu()).reshape(SHAPE), values(1))


def test_dynamic_mode_waits_for_nothing_else(emulated_gpu, lent):
    made = ndd.tensor(values(1))
    found = made.gpu()
    found.evaluate()
    assert any("copy" in what for what in emulated_gpu.pending())
    np.testing.assert_array_equal(np.asarray(found.cpu()), values(1))


@pytest.mark.parametrize("shape", [(), 5, (2, 3), [4, 0], np.int64(3), (np.int32(2), 2)])
def test_arrays(gpu_runtime, shape):
    array = headrace.empty_pinned(shape, np.float32)
    plain = np.empty(shape, np.float32)
    assert (array.shape, array.dtype, array.flags.c_contiguous) == (plain.shape, plain.dtype, True)
    if array.size:
        assert gpu_runtime.is_page_locked(array.ctypes.data)
        assert array.ctypes.data % 64 == 0
        array[...] = 1


def test_memory_lives_as_long_as_any_view(gpu_runtime):
    array = headrace.empty_pinned((3, 1000), np.int32)
    array[...] = 7
    view = array[1:, ::2].reshape(2, 20, 25)
    del array
    gc.collect()
    others = [headrace.empty_pinned((3, 1000), np.int32) for _ in range(4)]
    for other in others:
        other[...] = 0
    assert (view == 7).all()
    addresses = {each.ctypes.data for each in others}
    del others, other
    gc.collect()
    again = [headrace.empty_pinned((3, 1000), np.int32) for _ in range(4)]
    assert addresses == {each.ctypes.data for each in again}


def test_mistakes(gpu_runtime):
    for shape in ("abc", 1.5, (2, 1.0), None):
        with pytest.raises(errors.ArgumentTypeError, match="`shape` is"):
            headrace.empty_pinned(shape, np.uint8)
    with pytest.raises(errors.ArgumentValueError, match="cannot be negative"):
        headrace.empty_pinned((2, -1), np.uint8)
    for dtype in ("no type", object, "S3", "complex64"):
        with pytest.raises(errors.ArgumentTypeError, match="`dtype` is"):
            headrace.empty_pinned(2, dtype)


def test_ordinary_memory_where_no_gpu_is_wanted(gpu_is_off):
    with pytest.warns(UserWarning, match="`empty_pinned` asks for a GPU"):
        array = headrace.empty_pinned((2, 3), "float32")
    array[...] = 1
    assert array.sum() == 6
