"""Profiles of pipelines with work for a GPU."""

import sys
import types as python_types

import numpy as np
import pytest

from headrace import fn, pipeline_def
from headrace.profiling import Profile, recorder


@pipeline_def(batch_size=4, num_threads=2, device_id=0, seed=3)
def images():
    pixels = fn.external_source(lambda: [np.full((8, 8, 3), 7, np.uint8)] * 4)
    return fn.flip(pixels.gpu(), horizontal=1) + 1


@pytest.fixture
def ranges(monkeypatch):
    """What NVTX is told, in place of CuPy's module."""
    told = []
    module = python_types.ModuleType("cupy.cuda.nvtx")
    module.RangePush = told.append
    module.RangePop = lambda: told.append(None)
    monkeypatch.setitem(sys.modules, "cupy.cuda.nvtx", module)
    return told


def test_launches_are_recorded_and_named_for_tools(ranges):
    record = Profile()
    pipe = images(profile=record)
    for _ in range(6):
        (out,) = pipe.run()
    assert np.asarray(out.as_cpu()[0]).max() == 8
    (figures,) = record.figures()
    assert figures.device == "gpu"
    assert figures.batches == 5
    launched = {o.label.name: o for o in figures.operators}
    assert launched["fn.flip"].label.device == "gpu"
    assert "its launch" in launched["fn.flip"].label.note
    assert "fn.flip" in ranges
    depth = 0
    for name in list(ranges):
        depth += 1 if name else -1
        assert 0 <= depth <= 4
    stages = [name for name in ranges if name and name.startswith("headrace launch stage")]
    assert "of batch 0" in stages[0]
    assert "launch stage" in record.html() or "fn.flip" in record.html()
    while not record.figures()[0].device_peak_bytes:
        pipe.run()  # what looks at the queue is a thread
    names = {e["name"] for e in record.timeline()["traceEvents"]}
    assert {"fn.flip", "batches", "memory pool of the GPU (MB)"} <= names
    assert "pool of the GPU&#x27;s memory" in record.html()


def test_without_nvtx_there_are_no_ranges(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy.cuda.nvtx", None)
    monkeypatch.setitem(sys.modules, "nvtx", None)
    push, pop = recorder._ranges()
    push("name")
    pop()
    record = Profile()
    pipe = images(profile=record)
    for _ in range(3):
        pipe.run()
    assert record.figures()[0].batches == 2
