"""Which processors workers are bound to."""

from __future__ import annotations

import ctypes
import os
import threading

import numpy as np
import pytest

from headrace import Pipeline, fn
from headrace.config import AFFINITY_MASKS
from headrace.errors import ArgumentValueError
from headrace.executor.affinity import Affinity, find_affinity
from headrace.tensors.gpu import nvml

ALLOWED = frozenset({2, 3, 5, 70})


@pytest.fixture(autouse=True)
def processors(monkeypatch):
    for name in (*AFFINITY_MASKS, "DALI_DISABLE_NVML"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(ALLOWED), raising=False)
    monkeypatch.setattr(os, "sched_setaffinity", lambda pid, which: None, raising=False)


@pytest.mark.parametrize(
    ("masks", "expected"),
    [
        ({}, [(2, 3, 5, 70)] * 3),
        ({"DALI_AFFINITY_MASK": "5,2"}, [(5,), (2,), (2, 3, 5, 70)]),
        (
            {"DALI_AFFINITY_MASK": "5", "HEADRACE_AFFINITY_MASK": " 70 , 70,3,2"},
            [(70,), (70,), (3,)],
        ),
        ({"DALI_AFFINITY_MASK": "5", "HEADRACE_AFFINITY_MASK": " "}, [(5,)] + [(2, 3, 5, 70)] * 2),
    ],
    ids=str,
)
def test_lists(masks, expected, monkeypatch):
    for name, value in masks.items():
        monkeypatch.setenv(name, value)
    affinity = find_affinity(3, None)
    assert [affinity.of(k) for k in range(3)] == expected


@pytest.mark.parametrize("name", AFFINITY_MASKS)
@pytest.mark.parametrize(
    ("value", "wrong"), [("1,a", "a"), ("0,,1", ""), ("0-3", "0-3"), ("-1", "-1"), ("0,²", "²")]
)
def test_what_is_no_list_is_an_error_of_the_build(name, value, wrong, monkeypatch):
    monkeypatch.setenv(name, value)
    pipe = Pipeline(4, 1, None, set_affinity=True)
    with pipe:
        pipe.set_outputs(fn.external_source([np.zeros((4, 1))]))
    with pytest.raises(ArgumentValueError, match=f"{name} is '{value}', in which '{wrong}' is"):
        pipe.build()
    unbound = Pipeline(4, 1, None)  # which has no use for it
    with unbound:
        unbound.set_outputs(fn.external_source([np.zeros((4, 1))]))
    unbound.build()


@pytest.mark.parametrize("debug", [False, True])
def test_processors_that_are_not_there_are_named_once(debug, monkeypatch):
    from headrace.pipeline.experimental import pipeline_def

    @pipeline_def(batch_size=2, num_threads=4, device_id=None, set_affinity=True, debug=debug)
    def numbers():
        return fn.cast(fn.external_source(lambda: [np.zeros(3)] * 2), dtype=np.float32) + 1

    monkeypatch.setenv("HEADRACE_AFFINITY_MASK", "5,4,2,71,99")
    pipe = numbers()
    with pytest.warns(UserWarning, match="HEADRACE_AFFINITY_MASK") as warned:
        pipe.run()
    assert len(warned) == 1
    assert "may not use: 4, 71; it may use 2, 3, 5, 70." in str(warned[0].message)
    assert warned[0].filename == __file__
    affinity = pipe._settings.affinity
    assert affinity == Affinity((5, None, 2, None), (2, 3, 5, 70))


def test_systems_that_bind_no_threads_say_so(monkeypatch):
    monkeypatch.delattr(os, "sched_setaffinity")
    with pytest.warns(UserWarning, match="`set_affinity` has no effect"):
        assert find_affinity(2, None) is None


class Nvml:
    """A library that knows the processors near a GPU."""

    def __init__(self, near, failing=""):
        self.near = near
        self.failing = failing
        self.open = 0

    def nvmlInit_v2(self):
        self.open += 1
        return 0

    def nvmlShutdown(self):
        self.open -= 1
        return 0

    def nvmlDeviceGetHandleByPciBusId_v2(self, address, handle):
        assert address == b"0000:07:00.0"
        return 6 if self.failing == "handle" else 0

    def nvmlDeviceGetCpuAffinity(self, handle, count, words):
        assert count.value == len(words) >= 16
        for k in self.near:
            words[k // 64] |= 1 << k % 64
        return 3 if self.failing == "affinity" else 0


class Gpu:
    """What is asked for its address."""

    xp = cuda = runtime = None

    def __init__(self):
        self.xp = self.cuda = self.runtime = self

    def deviceGetPCIBusId(self, device_id):
        assert device_id == 1
        return "0000:07:00.0"


@pytest.mark.parametrize(
    ("near", "failing", "disabled", "others"),
    [
        ({3, 4, 70}, "", "", (3, 70)),
        ({3, 4, 70}, "", "1", (2, 3, 5, 70)),
        ({3}, "handle", "0", (2, 3, 5, 70)),
        ({3}, "affinity", "0", (2, 3, 5, 70)),
        ({64}, "", "", (2, 3, 5, 70)),  # none that the program may use
    ],
)
def test_beyond_the_list_workers_stay_near_the_gpu(near, failing, disabled, others, monkeypatch):
    library = Nvml(near, failing)
    monkeypatch.setattr(ctypes, "CDLL", lambda name: library)
    monkeypatch.setattr(nvml, "get_runtime", lambda device_id: Gpu())
    monkeypatch.setenv("DALI_DISABLE_NVML", disabled)
    monkeypatch.setenv("DALI_AFFINITY_MASK", "5")
    assert find_affinity(3, 1) == Affinity((5,), others)
    assert library.open == 0
    assert find_affinity(1, 1).of(0) == (5,)


def test_without_the_library_there_is_none(monkeypatch):
    def missing(name):
        raise OSError(name)

    monkeypatch.setattr(ctypes, "CDLL", missing)
    assert find_affinity(2, 1) == Affinity((), (2, 3, 5, 70))


def test_threads_are_told_their_own(monkeypatch):
    bound = {}

    def bind(pid, which):
        bound[threading.current_thread().name] = which

    monkeypatch.setattr(os, "sched_setaffinity", bind)
    monkeypatch.setenv("DALI_AFFINITY_MASK", "70,2")
    pipe = Pipeline(2, 3, None, set_affinity=True)
    with pipe:
        pipe.set_outputs(fn.external_source(lambda: [np.zeros(3)] * 2))
    pipe.build()
    executor = pipe._executor
    pipe.run()
    executor.shutdown()
    for thread in executor._threads:
        thread.join()
    assert bound == {
        "headrace-worker-0": (70,),
        "headrace-worker-1": (2,),
        "headrace-worker-2": (2, 3, 5, 70),
    }
