"""Who does the work of streams: the thread that brought an iteration there, where no decoder is."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from headrace import fn, pipeline_def
from headrace.executor.cpu.batch import BatchBuffer
from headrace.executor.cpu.shape_statistics import ShapeStatistics
from headrace.executor.gpu.tasks import GpuTasks
from headrace.operators.support.schema import Spec
from headrace.tensors.gpu.device import get_device
from headrace.types import DALIDataType
from tests.support.speech import encode


def clips(iteration, count=5):
    rng = np.random.default_rng(iteration)
    return [
        encode(rng.integers(-9999, 9999, n).astype(np.int16)) for n in rng.integers(50, 300, count)
    ]


@pytest.fixture
def threads(monkeypatch):
    """Names of the threads that were at work on streams."""
    names = []
    run = GpuTasks.launch

    def noted(self, iteration, stream):
        names.append(threading.current_thread().name)
        return run(self, iteration, stream)

    monkeypatch.setattr(GpuTasks, "launch", noted)
    return names


@pytest.mark.parametrize("workers", [1, 3])
def test_workers_go_on_with_what_they_have_decoded(emulated_gpu, threads, workers):
    @pipeline_def(batch_size=5, num_threads=workers, device_id=0)
    def pipeline():
        files = fn.external_source(source=lambda info: clips(info), batch_info=False)
        audio, _ = fn.decoders.audio(files, downmix=True)
        return audio.gpu() * 2, audio

    pipe = pipeline()
    for _ in range(6):
        doubled, audio = pipe.run()
        for k in range(5):
            np.testing.assert_array_equal(
                np.asarray(doubled.as_cpu().at(k)), 2 * np.asarray(audio.at(k))
            )
    assert {name[:15] for name in threads} == {"headrace-worker"}


def test_samples_that_got_other_memory_are_in_no_segment(emulated_gpu):
    buffer = BatchBuffer(3, Spec(DALIDataType.FLOAT, 1), ShapeStatistics(), get_device(0).pinned)
    shapes = np.array([[5], [40], [7]], np.int64)
    found = buffer.rows_for([0, 1, 2], shapes)
    assert found.begins.tolist() == [0, 16, 64]
    assert found.flat.size == 80
    assert [row.shape for row in found.rows] == [(5,), (40,), (7,)]
    assert [segment.first for segment in buffer.segments or ()] == [0]
    buffer.row(1, (3,))
    assert buffer.segments is None
