"""`pin_memory` of the iterators: batches in PyTorch's page-locked memory.

PyTorch's allocator stands on the emulated GPU; `test_feeding.py` has PyTorch's own.
"""

from __future__ import annotations

import gc
import os

import numpy as np
import pytest
import torch

from headrace import Pipeline, errors, fn, pipeline_def, types
from headrace.kernels.gpu import staging
from headrace.plugin.pytorch import (
    DALIGenericIterator,
    DALIRaggedIterator,
    LastBatchPolicy,
    page_locked,
)
from headrace.tensors.gpu.device import get_device
from tests.gpu.pytorch.test_device import BATCH, images, pipeline, ragged
from tests.support.gpu.torch_pinned import PinnedAllocator

WORKERS = ["threads"] + ["processes"] * hasattr(os, "memfd_create")


@pytest.fixture
def pinned(emulated_gpu, monkeypatch):
    """PyTorch's allocator."""
    allocator = PinnedAllocator(emulated_gpu)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.Tensor, "is_pinned", lambda self: allocator.is_pinned(self))
    monkeypatch.setattr(torch.Tensor, "pin_memory", lambda self: allocator.pin_memory(self))
    monkeypatch.setattr(page_locked, "_allocated", allocator.allocate)
    monkeypatch.setattr(page_locked, "_POOL", page_locked.PageLockedPool())
    yield allocator
    gc.collect()
    emulated_gpu.check()
    allocator.close()


def copies(monkeypatch):
    """Sizes of what is copied to page-locked memory when all samples are there."""
    found = []
    copy = staging.copy_by_threads

    def note(target, source, threads):
        found.append(source.nbytes)
        copy(target, source, threads)

    monkeypatch.setattr("headrace.executor.output_memory.copy_by_threads", note)
    return found


@pytest.mark.parametrize("workers", WORKERS)
def test_batches_are_page_locked(pinned, workers, monkeypatch):
    copied = copies(monkeypatch)
    pipe = pipeline(lambda x: (fn.cast(fn.flip(x), dtype=types.FLOAT), x), workers=workers)
    it = DALIGenericIterator(pipe, ["flipped", "same"], pin_memory=True)
    steps = [step for (step,) in it]
    assert len(steps) == 8
    for k, step in enumerate(steps):
        assert step["flipped"].is_pinned()
        assert step["same"].is_pinned()
        np.testing.assert_array_equal(step["flipped"], images(k)[:, :, ::-1].astype(np.float32))
        np.testing.assert_array_equal(step["same"], images(k))
    made = 4 * images(0).nbytes
    assert pipe.counters()["workers"] == workers
    assert (made in copied) == (workers == "processes"), "threads write to it"
    assert images(0).nbytes in copied, "what was fed is not there"


@pytest.mark.parametrize("part", [slice(None), slice(1, 3), 2])
@pytest.mark.parametrize("workers", WORKERS)
def test_a_tensor_may_be_dropped_when_its_copy_is_queued(emulated_gpu, pinned, workers, part):
    """The copy is as late as can be, and on a stream that nobody else knows of."""
    pipe = pipeline(count=30, workers=workers)
    it = DALIGenericIterator(pipe, ["image"], pin_memory=True)
    stream, device = emulated_gpu.acquire_stream(), get_device(0)
    found = []
    for (step,) in it:
        tensor = step["image"][part]
        with emulated_gpu.active():
            target = device.queue(stream).empty(tuple(tensor.shape), np.uint8, 1)
            pinned.copy_to(int(target.pointers[0]), tensor, stream)
        found.append(target)
        del step, tensor
        gc.collect(0)
    for k, target in enumerate(found):
        out = device.pinned.empty(target.shapes[0], np.uint8)
        emulated_gpu.copy(out.ctypes.data, int(target.pointers[0]), out.nbytes, stream)
        emulated_gpu.synchronize(stream)
        np.testing.assert_array_equal(out, images(k)[:, :, ::-1][part])
    emulated_gpu.release_stream(stream)


def test_memory_is_used_again(pinned):
    it = DALIGenericIterator(pipeline(count=40), ["image"], pin_memory=True)
    for (step,) in it:
        del step
    assert len(pinned.made) <= 8


@pytest.mark.parametrize("workers", WORKERS)
def test_samples_of_many_shapes(pinned, workers):
    pipe = pipeline(lambda x: (fn.cast(x, dtype=types.FLOAT), x, x), source=ragged, workers=workers)
    tags = ["sparse_list", "sparse_coo", "sparse_list"]
    it = DALIRaggedIterator(pipe, ["a", "b", "c"], output_types=tags, pin_memory=True)
    for k, (step,) in enumerate(it):
        for row, a, c in zip(ragged(k), step["a"], step["c"], strict=True):
            assert a.is_pinned()
            assert c.is_pinned()
            np.testing.assert_array_equal(a, row.astype(np.float32))
            np.testing.assert_array_equal(c, row)
        assert step["b"]._values().is_pinned()
        assert step["b"]._indices().is_pinned()
        np.testing.assert_array_equal(step["b"]._values(), np.concatenate(ragged(k)).ravel())
    assert k == 7


def test_every_way_to_make_an_output(pinned, monkeypatch):
    """Views of another output, results for whole batches, constants, objects."""

    @pipeline_def(batch_size=BATCH, num_threads=2, device_id=None, seed=1)
    def many():
        x = fn.external_source(images)
        y = fn.flip(x)
        return (
            y,
            fn.reshape(y, shape=[-1]),
            fn.permute_batch(y, indices=[3, 2, 1, 0]),
            types.Constant(np.float32([1, 2]), device="cpu"),
            fn.external_source(lambda: ["a"] * BATCH, dtype=types.STRING),
            fn.random.uniform(range=[0, 1]),
            y,
        )

    names = ["y", "flat", "turned", "constant", "name", "drawn", "again"]
    it = DALIGenericIterator(many(), names, pin_memory=True)
    for k in range(3):
        (step,) = next(it)
        flipped = images(k)[:, :, ::-1]
        assert step.pop("name") == ["a"] * BATCH
        assert all(tensor.is_pinned() for tensor in step.values())
        assert len({tensor.data_ptr() for tensor in step.values()}) == len(step)
        np.testing.assert_array_equal(step["y"], flipped)
        np.testing.assert_array_equal(step["flat"], flipped.reshape(BATCH, -1))
        np.testing.assert_array_equal(step["turned"], flipped[::-1])
        np.testing.assert_array_equal(step["again"], flipped)
        np.testing.assert_array_equal(step["constant"], [[1, 2]] * BATCH)


def test_partial_batches(pinned, tmp_path):
    numbers = np.arange(10, dtype=np.int32)
    files = [str(tmp_path / f"{n}.npy") for n in numbers]
    for n, file in zip(numbers, files, strict=True):
        np.save(file, n[None])

    @pipeline_def(batch_size=BATCH, num_threads=2, device_id=None)
    def read():
        return fn.readers.numpy(files=files, name="reader")

    it = DALIGenericIterator(
        read(),
        ["n"],
        reader_name="reader",
        last_batch_policy=LastBatchPolicy.PARTIAL,
        pin_memory=True,
    )
    found = [step["n"] for (step,) in it]
    assert [len(n) for n in found] == [4, 4, 2]
    assert all(n.is_pinned() for n in found)
    np.testing.assert_array_equal(torch.cat(found)[:, 0], numbers)


def test_what_comes_from_a_gpu(pinned):
    pipe = pipeline(lambda x: (fn.flip(x.gpu()).cpu(), x), device_id=0)
    it = DALIGenericIterator(pipe, ["flipped", "same"], pin_memory=True)
    for k, (step,) in enumerate(it):
        assert step["flipped"].is_pinned()
        np.testing.assert_array_equal(step["flipped"], images(k)[:, :, ::-1])


def test_large_batches_are_copied_by_several_threads(pinned, monkeypatch):
    monkeypatch.setattr(staging, "LEAST_BYTES", 1 << 20)
    monkeypatch.setattr(staging, "_LEAST_PIECE_BYTES", 1 << 18)
    data = np.random.default_rng(1).integers(0, 256, (BATCH, 500_001), np.uint8)
    it = DALIGenericIterator(
        pipeline(lambda x: x, source=lambda k: data + k), ["x"], pin_memory=True
    )
    for k, (step,) in enumerate(it):
        np.testing.assert_array_equal(step["x"], data + k)


def test_memory_limits_and_hints(pinned):
    pipe = Pipeline(BATCH, 2, bytes_per_sample=100, memory_limit_bytes=1 << 20)
    with pipe:
        pipe.set_outputs(fn.flip(fn.external_source(images)))
    it = DALIGenericIterator(pipe, ["x"], pin_memory=True)
    for k in range(4):
        np.testing.assert_array_equal(next(it)[0]["x"], images(k)[:, :, ::-1])
    assert any(pool.name == "outputs" for pool in pipe.memory_report().pools)


def test_a_built_pipeline_is_refused(pinned):
    pipe = pipeline()
    pipe.build()
    with pytest.raises(errors.UsageError, match="`pin_memory` decides how the pipeline is built"):
        DALIGenericIterator(pipe, ["x"], pin_memory=True)


def test_without_a_gpu_there_is_a_warning(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.warns(UserWarning, match="`pin_memory` is True, but PyTorch finds no GPU"):
        it = DALIGenericIterator(pipeline(), ["x"], pin_memory=True)
    for k, (step,) in enumerate(it):
        assert not step["x"].is_pinned()
        np.testing.assert_array_equal(step["x"], images(k)[:, :, ::-1])
