"""The thread that decodes: jobs of both kinds, in order, and what is kept for how long."""

from __future__ import annotations

import ctypes
import gc
import threading
import weakref

import numpy as np
import pytest

from headrace.kernels.gpu.decode import engine_loop as loop
from headrace.kernels.gpu.decode.engine_lock import engine_lock_at
from headrace.kernels.gpu.decode.engine_thread import EngineThread, engine_thread
from tests.support.gpu.runtime import EmulatedRuntime


class Library:
    """C functions that note what they are called with."""

    def __init__(self):
        self.calls = []
        self.gate = threading.Event()
        self.gate.set()
        self.answer = 0
        number = ctypes.c_int64
        self._kept = [
            ctypes.CFUNCTYPE(ctypes.c_int, *[number] * count)(function)
            for count, function in (
                (5, self._noting("initialize")),
                (6, self._decode),
                (7, self._decode),
                (5, self._noting("region")),
                (2, self._noting("record")),
                (1, self._noting("synchronize")),
            )
        ]
        self.functions = np.array(
            [ctypes.cast(f, ctypes.c_void_p).value for f in self._kept], np.uint64
        )

    def _noting(self, name):
        def function(*args):
            self.calls.append((name, *args))
            return 0

        return function

    def _decode(self, *args):
        self.gate.wait(20)
        self.calls.append(("decode", *args))
        return self.answer

    def job(self, number, *, event=0, params=None, regions=None):
        job = np.zeros(loop.JOB_NUMBERS, np.uint64)
        job[loop.FUNCTIONS] = self.functions.ctypes.data
        job[loop.HANDLE : loop.IMAGES + 1] = (number, 2, 3, 4, 5, 6, 7)
        job[loop.STREAM], job[loop.EVENT] = 8, event
        if params is not None:
            job[loop.COUNT] = len(params)
            job[loop.PARAMS], job[loop.REGIONS] = params.ctypes.data, regions.ctypes.data
        return job


@pytest.fixture
def library():
    return Library()


@pytest.fixture
def thread(tmp_path):
    runtime = EmulatedRuntime(0)
    found = EngineThread(runtime, engine_lock_at(tmp_path / "lock"))
    found.runtime = runtime
    return found


def test_a_batch(library, thread):
    assert thread.submit(library.job(1), None).wait() == 0
    assert library.calls == [("initialize", 1, 2, 3, 1, 4), ("decode", 1, 2, 5, 6, 7, 8)]


def test_a_state_rests_until_its_event(library, thread):
    thread.submit(library.job(1, event=9), None).wait()
    names = [name for name, *_ in library.calls]
    assert names == ["synchronize", "initialize", "decode", "record"]
    assert library.calls[-1] == ("record", 9, 8)


def test_regions(library, thread):
    params = np.array([21, 22], np.uint64)
    regions = np.array([[1, 2, 3, 4], [0, 0, -1, -1]], np.int64)
    thread.submit(library.job(1, params=params, regions=regions), (params, regions)).wait()
    assert library.calls[1:3] == [("region", 21, 1, 2, 3, 4), ("region", 22, 0, 0, -1, -1)]
    assert library.calls[3] == ("decode", 1, 2, 5, 6, 7, params.ctypes.data, 8)


def test_what_is_refused(library, thread):
    library.answer = 6
    running = thread.submit(library.job(1), None)
    assert [running.wait(), running.wait()] == [6, 6]


def test_order_and_calls_between(library, thread):
    running = [thread.submit(library.job(n), None) for n in range(5)]
    name = thread.call(lambda: (threading.current_thread().name, len(library.calls)))
    assert name == ("headrace-engines", 10)
    assert [r.wait() for r in reversed(running)] == [0] * 5
    assert [args[0] for kind, *args in library.calls if kind == "decode"] == list(range(5))


def test_a_call_that_fails(library, thread):
    with pytest.raises(ZeroDivisionError):
        thread.call(lambda: 1 / 0)
    assert thread.call(lambda: 3) == 3


def test_what_a_batch_needs_lives_until_it_is_decoded(library, thread):
    library.gate.clear()
    needed = np.zeros(4)
    gone = weakref.ref(needed)
    thread.submit(library.job(1), needed)  # nobody waits for it
    del needed
    gc.collect()
    assert gone() is not None
    library.gate.set()
    thread.call(int)
    thread.submit(library.job(2), None).wait()
    assert gone() is None


def test_many_threads(library, thread):
    def work(first):
        for n in range(first, first + 50):
            assert thread.submit(library.job(n), None).wait() == 0

    threads = [threading.Thread(target=work, args=(100 * k,)) for k in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(20)
    decoded = [args[0] for kind, *args in library.calls if kind == "decode"]
    assert sorted(decoded) == sorted(100 * k + n for k in range(4) for n in range(50))


def test_more_than_the_ring_holds(library, thread):
    for _ in range(loop.RING + 10):
        thread.submit(library.job(1), None)
    assert thread.call(lambda: len(library.calls)) == 2 * (loop.RING + 10)


def test_the_thread_ends_with_its_owner(tmp_path):
    runtime = EmulatedRuntime(0)
    thread = EngineThread(runtime, engine_lock_at(tmp_path / "lock"))
    running = thread.call(threading.current_thread)
    del thread
    gc.collect()
    running.join(20)
    assert not running.is_alive()


def test_one_for_a_device():
    runtime = EmulatedRuntime(0)
    assert engine_thread(runtime) is engine_thread(runtime)
    assert engine_thread(runtime) is not engine_thread(EmulatedRuntime(0))
