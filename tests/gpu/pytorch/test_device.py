"""`device` of the iterators: the engine uploads what a pipeline makes on the CPU.

PyTorch for the CPU takes the emulated GPU's memory for the host's, as in `test_conversions.py`.
"""

from __future__ import annotations

import gc
import os
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from headrace import Pipeline, errors, fn, pipeline_def, types
from headrace.plugin.pytorch import (
    DALIClassificationIterator,
    DALIGenericIterator,
    DALIRaggedIterator,
)
from headrace.tensors.gpu.device import get_device
from tests.support.gpu.late import read_on
from tests.support.gpu.streams import LateEvent

WORKERS = ["threads"] + ["processes"] * hasattr(os, "memfd_create")
BATCH = 4


@pytest.fixture
def stream(emulated_gpu, monkeypatch):
    """PyTorch's current stream."""
    number = emulated_gpu.acquire_stream()
    monkeypatch.setattr(torch.cuda, "current_stream", lambda _: SimpleNamespace(cuda_stream=number))
    yield number
    emulated_gpu.release_stream(number)


def images(k):
    """Batch number `k`, of which no other has a value."""
    return np.arange(BATCH * 6 * 5 * 3, dtype=np.uint8).reshape(BATCH, 6, 5, 3) % 50 + np.uint8(k)


def ragged(k):
    return [np.full((i + 1, 2), 10 * k + i, np.int32) for i in range(BATCH)]


def pipeline(outputs=lambda x: fn.flip(x), *, count=8, source=images, **settings):
    def numbered(k):
        if k >= count:
            raise StopIteration
        return source(k)

    pipe = Pipeline(BATCH, 2, seed=1, **settings)
    with pipe:
        made = outputs(fn.external_source(numbered))
        pipe.set_outputs(*(made if isinstance(made, tuple) else (made,)))
    return pipe


def seen(runtime, stream, tensor, like):
    return read_on(runtime, tensor.data_ptr(), like, stream)


@pytest.mark.parametrize("workers", WORKERS)
def test_batches_are_uploaded_ahead_and_nobody_waits(emulated_gpu, stream, workers, monkeypatch):
    waits = []
    synchronize, synchronize_all = LateEvent.synchronize, emulated_gpu.synchronize

    def note(event):
        if not event.reached():
            waits.append(event)
        synchronize(event)

    monkeypatch.setattr(LateEvent, "synchronize", note)
    monkeypatch.setattr(
        emulated_gpu, "synchronize", lambda number: (waits.append(number), synchronize_all(number))
    )
    pipe = pipeline(lambda x: (fn.cast(fn.flip(x), dtype=types.FLOAT), x), workers=workers)
    it = DALIGenericIterator(pipe, ["flipped", "same"], device="cuda:0")
    assert (pipe.device_id, pipe.counters()["workers"]) == (0, workers)
    steps = [next(it)[0] for _ in range(3)]
    assert not waits
    steps += [step for (step,) in it]
    for k, step in enumerate(steps):
        flipped = images(k)[:, :, ::-1].astype(np.float32)
        np.testing.assert_array_equal(seen(emulated_gpu, stream, step["flipped"], flipped), flipped)
        np.testing.assert_array_equal(
            seen(emulated_gpu, stream, step["same"], images(k)), images(k)
        )
    assert k == 7


@pytest.mark.parametrize("workers", WORKERS)
def test_memory_that_was_let_go_is_not_used_anew_before_it_was_read(emulated_gpu, stream, workers):
    """The program drops each batch while its stream, and the upload, have done nothing yet."""
    pipe = pipeline(count=40, workers=workers, prefetch_queue_depth=3)
    it = DALIGenericIterator(pipe, ["image"], device="cuda:0")
    device, found = get_device(0), []
    for (step,) in it:
        out = device.pinned.empty((BATCH, 6, 5, 3), np.uint8)
        emulated_gpu.copy(out.ctypes.data, step["image"].data_ptr(), out.nbytes, stream)
        found.append(out)
        del step
        gc.collect(0)
    emulated_gpu.synchronize(stream)
    for k, out in enumerate(found):
        np.testing.assert_array_equal(out, images(k)[:, :, ::-1])
    assert len(found) == 40


@pytest.mark.parametrize("workers", WORKERS)
def test_samples_are_copied_from_where_they_were_written(
    emulated_gpu, stream, workers, monkeypatch
):
    pipe = pipeline(lambda x: (fn.flip(x), fn.flip(x, vertical=1)), workers=workers)
    sources = []
    copy = emulated_gpu.copy

    def note(target, source, size_bytes, number, **how):
        sources.append((source, size_bytes))
        copy(target, source, size_bytes, number, **how)

    monkeypatch.setattr(emulated_gpu, "copy", note)
    it = DALIGenericIterator(pipe, ["a", "b"], device="cuda:0")
    for _ in range(4):
        next(it)
    assert len(sources) >= 8
    assert all(emulated_gpu.is_page_locked(source) for source, _ in sources)
    assert {size for _, size in sources} == {images(0).nbytes}, "one copy for each batch"


def test_ragged_batches(emulated_gpu, stream):
    pipe = pipeline(lambda x: (x, fn.cast(x, dtype=types.FLOAT)), source=ragged)
    it = DALIRaggedIterator(
        pipe, ["a", "b"], output_types=["sparse_list", "sparse_list"], device="cuda:0"
    )
    for k, (step,) in enumerate(it):
        for row, a, b in zip(ragged(k), step["a"], step["b"], strict=True):
            np.testing.assert_array_equal(seen(emulated_gpu, stream, a, row), row)
            real = row.astype(np.float32)
            np.testing.assert_array_equal(seen(emulated_gpu, stream, b, real), real)


def test_classification(emulated_gpu, stream):
    pipe = pipeline(lambda x: (x, fn.reductions.max(x)))
    (step,) = next(DALIClassificationIterator(pipe, device=0))
    highest = images(0).reshape(BATCH, -1).max(axis=1)
    np.testing.assert_array_equal(seen(emulated_gpu, stream, step["label"], highest), highest)


@pytest.mark.parametrize("workers", WORKERS)
def test_texts_and_objects_stay_lists(emulated_gpu, stream, workers):
    def source(k):
        return images(k), [f"{k}-{i}" for i in range(BATCH)], [{"k": k}] * BATCH

    @pipeline_def(batch_size=BATCH, num_threads=2, device_id=None, workers=workers)
    def fed():
        dtypes = [types.UINT8, types.STRING, types.PYTHON_OBJECT]
        x, name, detail = fn.external_source(source, num_outputs=3, dtype=dtypes)
        return x, fn.permute_batch(name, indices=[3, 2, 1, 0]), detail, name

    it = DALIGenericIterator(fed(), ["x", "turned", "detail", "name"], device="cuda:0")
    for k in range(3):
        (step,) = next(it)
        np.testing.assert_array_equal(seen(emulated_gpu, stream, step["x"], images(k)), images(k))
        assert step["name"] == [f"{k}-{i}" for i in range(BATCH)]
        assert step["turned"] == step["name"][::-1]
        assert step["detail"] == [{"k": k}] * BATCH


def test_texts_alone(emulated_gpu):
    @pipeline_def(batch_size=BATCH, num_threads=2, device_id=None)
    def fed():
        return fn.external_source(lambda k: [str(k)] * BATCH, dtype=types.STRING)

    it = DALIGenericIterator(fed(), ["name"], device="cuda:0")
    assert [next(it)[0]["name"] for _ in range(3)] == [[str(k)] * BATCH for k in range(3)]


def test_what_the_definition_uploads_is_uploaded_once(emulated_gpu, stream):
    pipe = pipeline(lambda x: (fn.flip(x).gpu(), x, fn.flip(x.gpu())), device_id=0)
    it = DALIGenericIterator(pipe, ["a", "b", "c"], device="cuda:0")
    (step,) = next(it)
    names = [node.name for node in pipe._executor.plan.nodes if node.schema.copies_to]
    assert len(names) == len(set(names)) == 2
    flipped = images(0)[:, :, ::-1]
    for name, expected in zip("abc", (flipped, images(0), flipped), strict=True):
        np.testing.assert_array_equal(seen(emulated_gpu, stream, step[name], expected), expected)


def test_outputs_of_branches(emulated_gpu, stream):
    @pipeline_def(batch_size=BATCH, num_threads=2, device_id=None, enable_conditionals=True)
    def chosen():
        x = fn.external_source(lambda k: np.arange(BATCH, dtype=np.int32) + k)
        if x % 2 == 0:
            y = x * 10
        else:
            y = fn.cast(fn.cast(x, dtype=types.FLOAT), dtype=types.INT32)
        return y

    it = DALIGenericIterator(chosen(), ["y"], device="cuda:0")
    for k in range(3):
        expected = np.arange(BATCH, dtype=np.int32) + k
        expected[expected % 2 == 0] *= 10
        (step,) = next(it)
        np.testing.assert_array_equal(seen(emulated_gpu, stream, step["y"], expected), expected)


def test_to_the_host():
    pipe = pipeline(lambda x: (fn.flip(x.gpu()), x), device_id=0)
    it = DALIGenericIterator(pipe, ["flipped", "same"], device="cpu")
    for k in range(3):
        (step,) = next(it)
        np.testing.assert_array_equal(step["flipped"], images(k)[:, :, ::-1])
        np.testing.assert_array_equal(step["same"], images(k))


def test_a_device_for_each_pipeline(emulated_gpu, monkeypatch):
    asked = []

    def current_stream(number):
        asked.append(number)
        return SimpleNamespace(cuda_stream=1)

    monkeypatch.setattr(torch.cuda, "current_stream", current_stream)
    pipes = [pipeline(), pipeline()]
    devices = ["cuda:0", torch.device("cuda:1")]
    with pytest.warns(Warning, match="`size` does not know of shards"):
        it = DALIGenericIterator(pipes, ["image"], size=8 * BATCH, device=devices)
    next(it)
    assert asked == [0, 1]
    with pytest.raises(errors.ArgumentValueError, match="`device` has 1 devices for 2 pipelines"):
        DALIGenericIterator([pipeline(), pipeline()], ["image"], size=8, device=["cuda:0"])


def test_the_current_device(emulated_gpu, stream):
    pipe = pipeline()
    DALIGenericIterator(pipe, ["image"], device="cuda")
    assert pipe.device_id == 0


def test_mistakes(emulated_gpu):
    def refused(error, text, pipe=None, **arguments):
        with pytest.raises(error, match=text):
            DALIGenericIterator(pipe or pipeline(), ["image"], **arguments)

    refused(errors.ArgumentTypeError, "`device` is 'gpu'; expected a device", device="gpu")
    refused(errors.ArgumentTypeError, "`device` is 1.5; expected a device", device=1.5)
    refused(errors.ArgumentValueError, "go to CUDA devices", device="meta")
    other = pipeline(lambda x: x.gpu(), device_id=1)
    text = "`device` is GPU 0, but the pipeline works on GPU 1"
    refused(errors.MisusedArgumentError, text, other, device="cuda:0")
    built = pipeline()
    built.build()
    refused(errors.UsageError, "`device` decides how the pipeline is built", built, device=0)
    text = "`pin_memory` is True and `device` 'cuda:0'"
    refused(errors.MisusedArgumentError, text, device="cuda:0", pin_memory=True)


def test_seeds_and_checkpoints_are_those_of_the_pipeline(emulated_gpu, stream):
    def made(device, checkpoint=None):
        @pipeline_def(batch_size=BATCH, num_threads=2, device_id=None, seed=7)
        def drawn():
            x = fn.external_source(lambda info: images(0)[0], batch=False)
            return fn.random.uniform(range=[0, 1]) + fn.cast(
                fn.reductions.sum(x), dtype=types.FLOAT
            )

        pipe = drawn(enable_checkpointing=True, checkpoint=checkpoint)
        return DALIGenericIterator(pipe, ["x"], device=device)

    here, there = made(None), made("cuda:0")
    for _ in range(3):
        expected = next(here)[0]["x"].numpy()
        np.testing.assert_array_equal(
            seen(emulated_gpu, stream, next(there)[0]["x"], expected), expected
        )
    again = made(None, there.checkpoints()[0])
    expected = next(here)[0]["x"].numpy()
    np.testing.assert_array_equal(next(again)[0]["x"], expected)
