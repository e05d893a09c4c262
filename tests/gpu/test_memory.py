"""Memory of pipelines on a GPU: the limit, who holds what, sizes that were told, statistics."""

from __future__ import annotations

import gc

import numpy as np
import pytest

from headrace import fn, pipeline_def, types
from headrace.executor.gpu.stage_replays import StageReplays
from headrace.tensors.gpu.device import get_device
from tests.support.processes import wait_until

pytestmark = pytest.mark.usefixtures("gpu_runtime")
KIB, MIB = 1 << 10, 1 << 20


@pipeline_def(batch_size=4, num_threads=2, device_id=0, prefetch_queue_depth=5)
def uploads(side=256):
    """256 KiB uploaded a batch, 1 MiB of floats made of it."""
    data = fn.external_source(
        lambda info: np.full((side, side), info.idx_in_epoch, np.uint8), batch=False, name="in"
    )
    return fn.cast(data.gpu(), dtype=types.FLOAT, name="out")


def settled(pipe):
    wait_until(lambda: not any(pipe.memory_report().in_progress))
    return pipe.memory_report()


@pytest.mark.parametrize("told", [0, 256 * KIB])
def test_limit_of_the_device(told):
    limited = uploads(memory_limit_bytes={"device": 4096 * KIB}, bytes_per_sample=told)
    free = uploads(bytes_per_sample=told)
    most = [0, 0]
    for k in range(8):
        for number, pipe in enumerate((limited, free)):
            out = pipe.run()[0].as_cpu().as_array()
            assert (out[:, 0, 0] == np.arange(4 * k, 4 * k + 4)).all()
            report = settled(pipe)
            assert MIB <= report.in_use.device <= (4 if pipe is limited else 12) * MIB
            most[number] = max(most[number], len(pipe._engine.executor.scheduled()))
    assert limited.memory_report().limit == (None, 4096 * KIB)
    assert 1 <= most[0] < most[1] == 4


def test_report_and_statistics():
    pipe = uploads(enable_memory_stats=True)
    out = pipe.run()[0]
    report = settled(pipe)
    names = {output.operator for output in report.outputs if output.device == "gpu"}
    assert "out" in names
    assert report.ready.device >= 4 * MIB
    assert report.with_user.device >= MIB
    assert {pool.name for pool in report.pools} == {"host", "pinned", "device"}
    assert "device" in str(report)
    found = pipe.executor_statistics()["GPU_out"]
    assert found["real_memory_size"] == [MIB]
    assert found["max_real_memory_size"] == [256 * KIB]
    assert found["reserved_memory_size"][0] >= MIB
    held = pipe.memory_report().in_use.device
    del out
    pipe._in_use.clear()
    gc.collect()
    assert pipe.memory_report().in_use.device <= held - MIB


def test_sizes_that_are_told_ahead_remove_allocations(monkeypatch):
    # Recordings need memory of several iterations at a time.
    monkeypatch.setattr(StageReplays, "run", lambda *_: None)

    @pipeline_def(batch_size=4, num_threads=2, device_id=0, enable_memory_stats=True)
    def hinted(hint=None):
        data = fn.external_source(
            lambda info: np.zeros(50_000 + 1000 * (info.idx_in_epoch % 7), np.uint8), batch=False
        )
        return fn.cast(data.gpu(), dtype=types.FLOAT, name="out", bytes_per_sample_hint=hint)

    def made_by(pipe):
        memory = get_device(0).memory
        gc.collect()
        memory.trim()
        pipe.build()
        before = memory.allocations
        for _ in range(12):
            pipe.run()
        return memory.allocations - before

    pipe = hinted()
    untold = made_by(pipe)
    told = pipe.executor_statistics()["GPU_out"]["max_reserved_memory_size"]
    del pipe
    again = hinted(told, bytes_per_sample=57_000)
    assert untold > 3
    # Memory in which the engine uploads small things is not that of batches.
    assert made_by(again) <= 2
