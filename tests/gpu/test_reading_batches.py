"""Threads without the interpreter read the files of whole batches, for a stage on the GPU."""

from __future__ import annotations

import gc
import itertools
import os
import threading
import weakref

import cv2
import numpy as np
import pytest

from headrace import Pipeline, fn
from headrace.errors import OperatorError
from headrace.executor.cpu.runner import SampleRunner
from headrace.experimental import dynamic
from headrace.kernels.cpu.decode.jpeg_scan import scan_jpegs
from headrace.kernels.cpu.reading_threads import ReadingThreads
from headrace.kernels.cpu.semaphores import Semaphores, semaphores
from headrace.kernels.gpu.decode import plain
from headrace.kernels.gpu.decode.plain import plain_jpegs
from headrace.operators import FileIndex, RaggedColumn, Reader
from headrace.operators import reader as declare_reader
from headrace.operators.support import registry

COUNT = 10
BATCH = 4


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    folder = tmp_path_factory.mktemp("images")
    rng = np.random.default_rng(5)
    for number in range(COUNT):
        name = f"{number:02}-ä.png" if number == 3 else f"{number:02}.png"
        image = rng.integers(0, 255, (10 + number, 12, 3), np.uint8)
        kind = ".jpg" if number % 3 == 1 else ".png"  # the name does not matter
        progressive = [cv2.IMWRITE_JPEG_PROGRESSIVE, number // 6] if kind == ".jpg" else []
        (folder / name).write_bytes(cv2.imencode(kind, image, progressive)[1].tobytes())
    return sorted(str(path) for path in folder.iterdir())


@pytest.fixture
def alone(monkeypatch):
    """Samples that workers have read."""
    found = []
    run = SampleRunner.run

    def noted(self, indices):
        found.extend(indices)
        return run(self, indices)

    monkeypatch.setattr(SampleRunner, "run", noted)
    return found


def pipeline(files, device="mixed", *, decode=True, reader=None, **more):
    options = {"batch_size": BATCH, "num_threads": 3, "seed": 3, "device_id": 0} | more
    if device == "cpu":
        options["device_id"] = None
    pipe = Pipeline(**options)
    with pipe:
        encoded, labels = fn.readers.file(files=files, name="reader", **(reader or {}))
        if decode:
            data = fn.decoders.image(encoded, device=device)
        else:
            data = encoded if device == "cpu" else encoded.gpu()
        pipe.set_outputs(data, labels if device == "cpu" else labels.gpu(), labels)
    return pipe


def take(pipe, runs):
    found = []
    for _ in range(runs):
        data, labels, same = pipe.run()
        data, labels = data.as_cpu(), labels.as_cpu()
        assert [labels.at(i).tolist() for i in range(len(data))] == [
            same.at(i).tolist() for i in range(len(data))
        ]
        found += [
            (data.at(i).tobytes(), data.at(i).shape, labels.at(i).tolist(), data[i].source_info())
            for i in range(len(data))
        ]
    return found


SHUFFLED = {"random_shuffle": True, "initial_fill": 4}
PADDED = {"pad_last_batch": True, "num_shards": 3, "shard_id": 1}


def test_headers_are_looked_at_when_files_are_read(emulated_gpu, images, monkeypatch):
    """And tell the same as when they are looked at later."""
    found = []

    def noted(encoded, scanned, *args):
        found.append((scanned, scan_jpegs(encoded.rows)))
        return plain_jpegs(encoded, scanned, *args)

    monkeypatch.setattr(plain, "plain_jpegs", noted)
    take(pipeline(images), 5)
    assert len(found) >= 5
    for early, late in found:
        np.testing.assert_array_equal(early.facts, late.facts)
        np.testing.assert_array_equal(early.addresses, late.addresses)
        np.testing.assert_array_equal(early.sizes, late.sizes)
        assert early.plain == late.plain
    assert {early.plain for early, _ in found} >= {0, 1}


@pytest.mark.sweep(pairs=True)
@pytest.mark.parametrize("decode", [True, False])
@pytest.mark.parametrize("reader", [{}, SHUFFLED, PADDED, {"shuffle_after_epoch": True}])
@pytest.mark.parametrize("threads", [1, 5])
def test_as_on_the_cpu(emulated_gpu, images, alone, decode, reader, threads):
    ours = take(pipeline(images, decode=decode, reader=reader, num_threads=threads), 7)
    assert not alone
    assert ours == take(pipeline(images, "cpu", decode=decode, reader=reader), 7)


def test_names_below_a_root_that_is_relative(emulated_gpu, images, alone, monkeypatch):
    folder, _ = os.path.split(images[0])
    monkeypatch.chdir(os.path.dirname(folder))
    names = [os.path.basename(name) for name in images]
    reader = {"file_root": os.path.basename(folder)}
    ours = take(pipeline(names, reader=reader), 3)
    assert not alone
    assert ours == take(pipeline(names, "cpu", reader=reader), 3)


def test_addresses_are_left_to_workers(emulated_gpu, images, alone):
    files = [f"file://{name}" for name in images]
    ours = take(pipeline(files), 3)
    assert set(alone) == set(range(BATCH))
    assert ours == take(pipeline(files, "cpu"), 3)


def test_without_semaphores_workers_read(emulated_gpu, images, alone, monkeypatch):
    def none(self):
        raise RuntimeError("There are none.")

    with monkeypatch.context() as patched:
        patched.setattr(Semaphores, "__init__", none)
        semaphores.cache_clear()
        ours = take(pipeline(images), 3)
        semaphores.cache_clear()
    assert set(alone) == set(range(BATCH))
    assert ours == take(pipeline(images, "cpu"), 3)


@pytest.fixture(params=["missing", "empty", "directory"])
def bad(request, images, tmp_path):
    files = list(images)
    path = tmp_path / "bad"
    if request.param == "empty":
        path.write_bytes(b"")
    elif request.param == "directory":
        path.mkdir()
    files[2] = files[7] = str(path)
    return files


@pytest.mark.parametrize("policy", ["skip", "replace"])
def test_what_cannot_be_read(emulated_gpu, bad, policy):
    ours, theirs = (pipeline(bad, device, on_bad_sample=policy) for device in ("mixed", "cpu"))
    assert take(ours, 6) == take(theirs, 6)
    # Iterations are worked on at once, so these may come in any order.
    first, same = (
        {(b.iteration, b.index, b.reason, b.action) for b in pipe.bad_samples if b.iteration < 6}
        for pipe in (ours, theirs)
    )
    assert first == same


def test_what_cannot_be_read_ends_the_run(emulated_gpu, bad):
    pipe = pipeline(bad)
    for _ in range(2):
        with pytest.raises(OperatorError, match="bad"):
            take(pipe, 1)
    assert take(pipe, 1)[0] == (*take(pipeline(bad[-2:], "cpu"), 1)[0][:2], [8], bad[8])


def test_empty_files_may_be_samples(emulated_gpu, images, tmp_path, alone):
    (tmp_path / "empty").write_bytes(b"")
    files = [*images[:2], str(tmp_path / "empty"), images[3]]
    reader = {"dont_use_mmap": True}
    ours = take(pipeline(files, decode=False, reader=reader), 2)
    assert not alone
    assert ours == take(pipeline(files, "cpu", decode=False, reader=reader), 2)


def test_files_that_grow_from_one_epoch_to_the_next(emulated_gpu, tmp_path):
    path = tmp_path / "growing"
    path.write_bytes(b"1" * 10)
    pipe = pipeline([str(path)] * BATCH, decode=False, prefetch_queue_depth=1)
    sizes = set()
    for number in range(6):
        sizes |= {shape for _, shape, _, _ in take(pipe, 1)}
        path.write_bytes(b"1" * 10 * 10**number)
    assert len(sizes) > 3


def test_a_run_goes_on_where_it_was_saved(emulated_gpu, images):
    options = {"reader": SHUFFLED, "enable_checkpointing": True}
    whole = take(pipeline(images, **options), 9)
    first = pipeline(images, **options)
    begun = take(first, 4)
    rest = take(pipeline(images, **options, checkpoint=first.checkpoint()), 5)
    assert begun + rest == whole


def test_an_epoch_that_is_begun_anew(emulated_gpu, images):
    pipe = pipeline(images)
    take(pipe, 1)
    pipe._restart_epoch()
    theirs = pipeline(images, "cpu")
    take(theirs, 1)
    theirs._restart_epoch()
    assert take(pipe, 2) == take(theirs, 2)


def reading_threads():
    return [t for t in threading.enumerate() if t.name.startswith("headrace-files")]


def test_threads_end_with_their_pipeline(emulated_gpu, images):
    before = set(reading_threads())
    pipe = pipeline(images, num_threads=3)
    take(pipe, 2)
    ours = set(reading_threads()) - before
    assert len(ours) == 3
    gone = weakref.ref(pipe)
    del pipe
    gc.collect()
    assert gone() is None
    for thread in ours:
        thread.join()


def test_a_pipeline_that_is_dropped_while_files_are_read(emulated_gpu, images, tmp_path):
    gate = tmp_path / "pipe"
    os.mkfifo(gate)  # to open one waits until somebody writes to it
    before = set(threading.enumerate())
    pipe = pipeline([*images[:2], str(gate), *images[2:]])
    pipe.build()
    pipe.schedule_run()
    del pipe
    gc.collect()
    with open(os.open(gate, os.O_RDWR)):
        for thread in set(threading.enumerate()) - before:
            thread.join()


def test_several_pipelines_at_once(emulated_gpu, images):
    pipes = [pipeline(images, reader=SHUFFLED) for _ in range(3)]
    found = [[] for _ in pipes]
    for _ in range(3):
        for pipe, taken in zip(pipes, found, strict=True):
            taken += take(pipe, 1)
    assert found[0] == found[1] == found[2] == take(pipeline(images, "cpu", reader=SHUFFLED), 3)


@pytest.mark.parametrize("bind", [True, False])
def test_threads_are_bound_where_that_is_wanted(emulated_gpu, images, bind, monkeypatch):
    bound = []
    monkeypatch.setattr(os, "sched_setaffinity", lambda _, cpus: bound.append(cpus), raising=False)
    pipe = pipeline(images, set_affinity=bind)
    take(pipe, 1)
    assert bool(bound) == bind


@pytest.mark.parametrize("failing", [{0}, {1, 2}, set(range(9))], ids=str)
def test_where_a_batch_cannot_be_begun_workers_read_it(
    emulated_gpu, images, alone, monkeypatch, failing
):
    submit, calls = ReadingThreads.submit, itertools.count()

    def sometimes(self, *args):
        if next(calls) in failing:
            raise MemoryError("page-locked memory is used up")
        return submit(self, *args)

    monkeypatch.setattr(ReadingThreads, "submit", sometimes)
    ours = take(pipeline(images, reader=SHUFFLED), 6)
    assert len(alone) >= BATCH * min(len(failing), 6)
    monkeypatch.undo()
    assert ours == take(pipeline(images, reader=SHUFFLED), 6)


def test_extents_and_columns_of_any_kind(emulated_gpu, images, alone):
    """Many images in one file, with labels and boxes."""
    whole = b"".join(map(_read, images))
    sizes = np.array([os.path.getsize(name) for name in images])
    offsets = np.cumsum(sizes) - sizes
    path = os.path.join(os.path.dirname(os.path.dirname(images[0])), "together")
    with open(path, "wb") as file:
        file.write(whole)
    counts = np.arange(COUNT) % 3
    boxes = np.random.default_rng(3).random((counts.sum(), 4), np.float32)

    @declare_reader("readers.together", num_outputs=3)
    class Together(Reader):
        """Images in one file."""

        def list_entries(self):
            return FileIndex(
                [path],
                files=np.zeros(COUNT, int),
                offsets=offsets,
                sizes=sizes,
                columns=[np.arange(COUNT), RaggedColumn(boxes, np.cumsum(counts))],
            )

    def built(device):
        pipe = Pipeline(BATCH, 2, 0 if device == "mixed" else None, seed=1)
        with pipe:
            encoded, numbers, found = fn.readers.together()
            decoded = fn.decoders.image(encoded, device=device)
            pipe.set_outputs(decoded, numbers, found if device == "cpu" else found.gpu())
        return pipe

    try:
        ours, theirs = built("mixed"), built("cpu")
        for _ in range(5):
            for mine, other in zip(ours.run(), theirs.run(), strict=True):
                mine = mine.as_cpu()
                for k in range(BATCH):
                    np.testing.assert_array_equal(mine.at(k), other.at(k))
                    assert mine[k].source_info() == other[k].source_info()
    finally:
        registry._schemas.pop("readers.together", None)
        vars(fn.readers).pop("together", None)


def _read(path):
    with open(path, "rb") as file:
        return file.read()


def test_a_reader_on_the_gpu_uploads_what_it_has_read(emulated_gpu, tmp_path):
    array = np.arange(12).reshape(3, 4)
    np.save(tmp_path / "a.npy", array)
    pipe = Pipeline(batch_size=2, num_threads=1, device_id=0)
    with pipe:
        read = fn.readers.numpy(file_root=tmp_path, device="gpu", name="reader")
        assert read.device == "gpu"
        pipe.set_outputs(read, read.cpu())
    for batches in (pipe.run(), Pipeline.deserialize(pipe.serialize()).run()):
        assert [type(b).__name__ for b in batches] == ["TensorListGPU", "TensorListCPU"]
        for batch in batches:
            np.testing.assert_array_equal(batch.as_cpu().as_array(), [array] * 2)
    reader = dynamic.readers.Numpy(file_root=tmp_path, device="gpu")
    (read,) = reader()
    assert read.device.device_type == "gpu"
    np.testing.assert_array_equal(read.cpu(), array)
