"""Stages on the CPU of pipelines with a GPU, in worker processes."""

from __future__ import annotations

import gc
import itertools
import os
import time

import numpy as np
import pytest

from headrace import fn, pipeline_def, types
from headrace.operators import Input, operator
from headrace.tensors.gpu.pinned import is_pinned
from tests.support.images import class_folders, picture
from tests.support.processes import wait_until

pytestmark = pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="needs Linux")

RAGGED = [picture(12 + k, 20 - k, seed=k) for k in range(5)]
DENSE = np.stack([picture(9, 8, seed=k) for k in range(5)])


def built(graph, workers):
    @pipeline_def(batch_size=5, num_threads=2, device_id=0, seed=4, workers=workers)
    def p():
        return graph()

    pipe = p()
    pipe.build()
    return pipe


def samples(pipe):
    """The samples of three iterations, on the host."""
    found = []
    for _ in range(3):
        for output in pipe.run():
            host = output.as_cpu() if hasattr(output, "as_cpu") else output
            found += [np.array(host.at(k)) for k in range(len(host))]
    return found


def check_same(graph):
    pipe = built(graph, "processes")
    statistics = pipe.executor_statistics()
    assert statistics["workers"] == "processes", statistics["why_threads"]
    expected = samples(built(graph, "threads"))
    for a, b in zip(expected, samples(pipe), strict=True):
        np.testing.assert_array_equal(a, b)
        assert a.dtype == b.dtype
    return pipe


def test_samples_of_many_shapes_and_of_one_go_to_the_gpu():
    def graph():
        x = fn.external_source(source=lambda: RAGGED, layout="HWC")
        y = fn.external_source(source=lambda: DENSE, layout="HWC")
        turned = fn.flip(x, horizontal=fn.random.coin_flip())
        return turned.gpu(), fn.flip(y).gpu(), y.gpu(), turned

    check_same(graph)


def test_to_the_gpu_and_back_to_a_worker():
    def graph():
        x = fn.external_source(source=lambda: DENSE, layout="HWC")
        there = (fn.flip(x).gpu() + 1).cpu()
        return fn.flip(there, vertical=1), fn.cast(there, dtype=types.FLOAT)

    check_same(graph)


def test_what_a_gpu_reads_is_page_locked_and_shared():
    from headrace.executor.processes.shared_pool import SHARED_POOL
    from headrace.tensors.addresses import addresses_of

    seen = []

    def graph():
        x = fn.external_source(source=lambda: RAGGED, layout="HWC")
        return fn.flip(x).gpu(), fn.resize(x, size=(6, 5)).gpu()

    pipe = built(graph, "processes")
    executor = pipe._executor
    complete = executor._stages.complete

    def note(iteration, program):
        for r, _ in program.written:
            seen.append([row for row in iteration.buffers[r].rows if row is not None])
        return complete(iteration, program)

    executor._stages.complete = note
    for _ in range(3):
        pipe.run()
    assert seen
    for rows in seen:
        assert all(is_pinned(row) for row in rows)
        sizes = np.array([row.nbytes for row in rows])
        assert SHARED_POOL.places_of(addresses_of(rows), sizes) is not None


def test_memory_is_unlocked_when_it_is_given_up(emulated_gpu):
    from headrace import backend
    from headrace.executor.processes.pinned_pool import pinned_shared_pool
    from headrace.executor.processes.shared_pool import SHARED_POOL
    from headrace.tensors.gpu.device import get_device

    pool = pinned_shared_pool(get_device(0))
    array = pool.empty((1 << 20,), np.uint8)
    array[:] = 1
    assert SHARED_POOL.place_of(array).size == 1 << 20
    address = array.ctypes.data
    assert emulated_gpu._memory.piece(address).kind == "registered"
    del array
    gc.collect()
    backend.ReleaseUnusedMemory()
    assert emulated_gpu._memory.piece(address) is None
    assert pool.stats().bytes_idle == 0


def test_what_is_only_read_is_left_to_threads(tmp_path):
    class_folders(tmp_path, 5)

    def graph():
        data, label = fn.readers.file(file_root=str(tmp_path))
        image = fn.decoders.image(data, device="mixed")
        return fn.cast(image, dtype=types.FLOAT), label

    pipe = built(graph, "processes")
    assert "nothing but reading" in pipe.executor_statistics()["why_threads"]


def test_a_batch_is_uploaded_while_the_next_one_is_in_progress(emulated_gpu, tmp_path, monkeypatch):
    """The threads that wait for processes have no time for it, and nobody asks for a batch."""
    monkeypatch.setattr("headrace.executor.cpu.tasks.chunk_size", lambda *_: 2)
    folder, counter = str(tmp_path), itertools.count()

    @operator("uploading_gated", inputs=Input())
    def uploading_gated(xp, x):
        """As it is, once there is a file of its number."""
        while not os.path.exists(f"{folder}/{int(x[0])}"):
            time.sleep(0.002)
        return x

    @pipeline_def(batch_size=4, num_threads=2, device_id=0, workers="processes")
    def gated():
        x = fn.external_source(lambda: np.full((4, 1), next(counter), np.int32))
        return fn.uploading_gated(x).gpu()

    uploads = []
    copy = emulated_gpu.copy

    def note(target, source, size_bytes, stream, **how):
        if size_bytes == 16 and emulated_gpu.is_page_locked(source):
            uploads.append(source)
        copy(target, source, size_bytes, stream, **how)

    monkeypatch.setattr(emulated_gpu, "copy", note)
    pipe = gated()
    for k in range(5):
        (tmp_path / str(k)).touch()
    pipe.schedule_run()
    try:
        for k in range(4):
            (out,) = pipe.share_outputs()
            np.testing.assert_array_equal(out.as_cpu().as_array(), np.full((4, 1), k))
            pipe.release_outputs()
            pipe.schedule_run()
        wait_until(lambda: len(uploads) == 5)
    finally:
        for k in range(5, 9):
            (tmp_path / str(k)).touch()
