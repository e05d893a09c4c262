"""External sources that give arrays of CuPy and tensors of PyTorch, in lists and by themselves."""

from __future__ import annotations

import gc

import numpy as np
import pytest

from headrace import Pipeline, errors, fn
from headrace.tensors import TensorListCPU
from headrace.tensors.gpu import foreign_memory
from tests.support.gpu.foreign import DLPackArray, InterfaceArray
from tests.support.gpu.libraries import CupyArray, PyTorchTensor, fake_libraries

LIBRARIES = [CupyArray, PyTorchTensor]
COUNT = 12


@pytest.fixture(autouse=True)
def _libraries(emulated_gpu, monkeypatch):
    streams = fake_libraries(emulated_gpu, monkeypatch)
    yield
    gc.collect(1)
    for _ in range(10):
        foreign_memory.release_finished()
    for stream in streams:
        emulated_gpu.release_stream(stream)


def dense(k=0):
    return np.arange(COUNT * 6, dtype=np.int32).reshape(COUNT, 3, 2) + 100 * k


def ragged(k=0):
    return [np.full((1 + (i + k) % 4, 2), 10 * k + i, np.int32) for i in range(COUNT)]


def pipeline(device="gpu", define=lambda x: (x, x + 1), **arguments):
    pipe = Pipeline(COUNT, 2, 0, seed=1)
    with pipe:
        pipe.set_outputs(*define(fn.external_source(device=device, **arguments)))
    return pipe


def assert_rows(batch, rows):
    host = batch if isinstance(batch, TensorListCPU) else batch.as_cpu()
    assert len(host) == len(rows)
    for k, row in enumerate(rows):
        np.testing.assert_array_equal(host.at(k), row)


@pytest.mark.parametrize("kind", LIBRARIES)
@pytest.mark.parametrize("no_copy", [False, True])
@pytest.mark.parametrize("device", ["gpu", "cpu"])
def test_lists(emulated_gpu, kind, no_copy, device):
    def source(k):
        return [kind(emulated_gpu, row) for row in ragged(k)]

    pipe = pipeline(device, source=source, no_copy=no_copy, layout="HW")
    for k in range(5):
        same, more = pipe.run()
        assert same.layout() == "HW"
        assert_rows(same, ragged(k))
        assert_rows(more, [row + 1 for row in ragged(k)])


@pytest.mark.parametrize("kind", LIBRARIES)
@pytest.mark.parametrize("no_copy", [False, True])
def test_arrays_of_samples(emulated_gpu, kind, no_copy):
    pipe = pipeline(source=lambda k: kind(emulated_gpu, dense(k)), no_copy=no_copy)
    for k in range(5):
        same, more = pipe.run()
        assert same.is_dense_tensor()
        assert_rows(same, dense(k))
        assert_rows(more, dense(k) + 1)


@pytest.mark.parametrize("kind", LIBRARIES)
def test_samples_one_by_one(emulated_gpu, kind):
    pipe = pipeline(
        source=lambda info: kind(emulated_gpu, ragged(info.iteration)[info.idx_in_batch]),
        batch=False,
    )
    for k in range(3):
        assert_rows(pipe.run()[0], ragged(k))


@pytest.mark.parametrize("kind", [*LIBRARIES, InterfaceArray])
def test_copies_are_one_launch_and_come_before_what_the_writers_do_next(emulated_gpu, kind):
    pipe = pipeline(name="x", define=lambda x: (x,))
    given = [kind(emulated_gpu, row) for row in ragged()]
    emulated_gpu.launches.clear()
    pipe.feed_input("x", given)
    assert len(emulated_gpu.launches) == 1
    for array in given:  # each on its own stream, or all on their library's
        stream = array.stream if kind is InterfaceArray else kind.library.current.ptr
        emulated_gpu.fill(array.address, 0, array.values.nbytes, stream)
        emulated_gpu.synchronize(stream)
    assert_rows(pipe.run()[0], ragged())


@pytest.mark.parametrize("kind", LIBRARIES)
def test_written_data_is_copied_at_once(emulated_gpu, kind):
    pipe = pipeline(name="x", define=lambda x: (x,))
    given = [kind(emulated_gpu, row) for row in ragged()]
    pipe.feed_input("x", given, cuda_stream=-1)
    for array in given:
        emulated_gpu.synchronize(array.stream)
        emulated_gpu.fill(array.address, 0, array.values.nbytes, array.stream)
        emulated_gpu.synchronize(array.stream)
    assert_rows(pipe.run()[0], ragged())


@pytest.mark.parametrize("kind", LIBRARIES)
def test_what_does_not_fit_is_told(emulated_gpu, kind):
    pipe = pipeline(name="x")

    def feed(rows, make=kind):
        pipe.feed_input("x", [make(emulated_gpu, row) for row in rows])

    feed(ragged())
    words = "iteration was int32 and the current type is float"
    with pytest.raises(errors.DataTypeError, match=words):
        feed([row.astype(np.float32) for row in ragged()])
    with pytest.raises(errors.ShapeError, match="previous iteration was 2 and the current is 3"):
        feed([row[..., np.newaxis] for row in ragged()])
    with pytest.raises(errors.DataTypeError, match="sample 1 is on the host, sample 0 on a GPU"):
        pipe.feed_input("x", [kind(emulated_gpu, ragged()[0]), *ragged()[1:]])
    with pytest.raises(
        errors.DataTypeError, match="position 3 has type 'FLOAT' expected to have type 'INT32'"
    ):
        feed([*ragged()[:3], np.zeros((2, 2), np.float32)])
    feed([*ragged()[:3]], DLPackArray)
    assert_rows(pipe.run()[0], ragged())
    assert_rows(pipe.run()[0], ragged()[:3])


@pytest.mark.parametrize("extent", [40, 64])
def test_neighbours_are_copied_to_the_host_one_by_one(emulated_gpu, monkeypatch, extent):
    """CUDA refuses copies from one allocation into the next."""
    values = [np.full((i % 2 + 1, extent), i, np.uint8) for i in range(COUNT)]
    whole = CupyArray(emulated_gpu, np.concatenate([row.ravel() for row in values]))
    copy, sizes = emulated_gpu.copy, []

    def logged(target, source, size_bytes, stream, **how):
        if whole.address <= source < whole.address + whole.values.nbytes:
            sizes.append(size_bytes)
        copy(target, source, size_bytes, stream, **how)

    monkeypatch.setattr(emulated_gpu, "copy", logged)

    def source():
        given = [CupyArray(emulated_gpu, row) for row in values]
        address = whole.address
        for array in given:
            array.data.ptr = address
            address += array.values.nbytes
        return given

    pipe = pipeline(source=source, no_copy=True, define=lambda x: (x.cpu(), x, x[:1]))
    host, same, first = pipe.run()
    assert_rows(host, values)
    assert_rows(same, values)
    assert_rows(first, [row[:1] for row in values])
    assert max(sizes) <= 2 * extent
