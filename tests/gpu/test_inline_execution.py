"""Inline execution: what the consumer's thread does of the work of streams."""

from __future__ import annotations

import itertools
import sys
import threading

import numpy as np
import pytest

from headrace import Pipeline, fn
from headrace.executor.gpu.program import GpuProgram
from headrace.executor.gpu.tasks import GpuTasks
from headrace.executor.inline_choice import InlineChoice
from tests.support.in_order import pipeline as pipeline_in_order
from tests.support.interrupter import Interrupter, run_until_a_handler_raises


def choose(monkeypatch, *, inline):
    """Have the consumer launch all stages, or none for which it need not wait."""
    monkeypatch.setattr(InlineChoice, "begin_waiting", lambda _choice, _now: inline)


@pytest.fixture(params=["near", "far"])
def distance(request, monkeypatch):
    """Whether the consumer launches all stages."""
    choose(monkeypatch, inline=request.param == "near")
    return request.param


@pytest.fixture
def threads(monkeypatch):
    """Names of the threads that were at work on streams, with the iteration."""
    found = []
    run = GpuTasks.launch

    def noted(self, iteration, stream):
        found.append((threading.current_thread().name, iteration.number))
        return run(self, iteration, stream)

    monkeypatch.setattr(GpuTasks, "launch", noted)
    return found


def counting(*, depth=2, hop=False, source=None):
    """A pipeline whose iteration number k gives three times k, and a random number."""
    pipe = Pipeline(2, 1, 0, seed=3, prefetch_queue_depth=depth)
    with pipe:
        numbers = fn.external_source(
            source=source or (lambda info: np.full((2, 3), info.iteration, np.int32)),
            batch_info=source is None,
            batch=True,
        )
        tripled = numbers.gpu() * 3
        if hop:
            tripled = (tripled.cpu() * 1).gpu() * 1
        pipe.set_outputs(tripled, fn.random.uniform().gpu() * 1.0)
    return pipe


def number_of(outputs):
    values = np.unique(outputs[0].as_cpu().as_array())
    assert len(values) == 1
    assert values[0] % 3 == 0
    return int(values[0]) // 3


@pytest.mark.sweep
@pytest.mark.parametrize("hop", [False, True])
@pytest.mark.parametrize("depth", [1, 2, 4])
def test_batches_come_in_order(emulated_gpu, distance, depth, hop):
    pipe = counting(depth=depth, hop=hop)
    assert [number_of(pipe.run()) for _ in range(20)] == list(range(20))


def test_values_do_not_depend_on_who_does_the_work(emulated_gpu, monkeypatch):
    found = []
    for is_inline in (True, False):
        choose(monkeypatch, inline=is_inline)
        pipe = counting()
        found.append([np.array(pipe.run()[1].as_cpu().as_array()) for _ in range(8)])
    np.testing.assert_array_equal(*found)


def test_a_consumer_that_is_back_soon_does_the_work(emulated_gpu, threads, monkeypatch):
    choose(monkeypatch, inline=True)
    pipe = counting()
    for _ in range(4):
        pipe.run()
    for name in pipe._executor.plan.streams:
        while not pipe._executor.monitor.streams[
            name
        ]._waiters:  # they sleep, and nobody wakes them
            threading.Event().wait(0.001)
    threads.clear()
    for _ in range(8):
        pipe.run()
    assert {name for name, _ in threads} == {threading.current_thread().name}


def test_a_consumer_that_is_busy_finds_it_done(emulated_gpu, threads, monkeypatch):
    choose(monkeypatch, inline=False)
    pipe = counting()
    for number in range(8):
        pipe.run()
        while pipe._executor.statistics.iterations < number + 2:  # it works ahead
            threading.Event().wait(0.001)
    own = threading.current_thread().name
    assert own not in {name for name, number in threads if 4 <= number < 8}


def test_functions_that_see_iterations_in_order_run_on_their_stream(
    emulated_gpu, threads, distance
):
    seen = [[]]
    pipe = pipeline_in_order(seen, device_id=0)
    for _ in range(8):
        pipe.run()
    assert threading.current_thread().name not in {name for name, _ in threads}


def test_errors_come_with_their_iteration(emulated_gpu, distance):
    def source(info):
        return np.full((2, 4), info.iteration, np.int32)

    pipe = Pipeline(2, 1, 0)
    with pipe:
        numbers = fn.external_source(source=source, batch_info=True)
        # The window leaves the samples of some iterations.
        start = fn.external_source(
            source=lambda info: np.full((2, 1), 3 * (info.iteration % 3 == 1), np.int32),
            batch_info=True,
        )
        pipe.set_outputs(fn.slice(numbers.gpu(), start=start, shape=[2], axes=[0]) * 3)
    for number in range(9):
        if number % 3 == 1:
            with pytest.raises(IndexError, match="slice"):
                pipe.run()
        else:
            assert number_of(pipe.run()) == number


def test_what_a_ctrl_c_interrupts_is_done_once_more(emulated_gpu, monkeypatch):
    choose(monkeypatch, inline=True)
    pipe = counting()
    pipe.schedule_run()
    expected, number, tries = 0, 1, 0
    while True:
        tries += 1
        assert tries < 40_000  # on a busy machine, streams are often faster than the consumer
        interrupter, before = Interrupter(number, "launch"), sys.gettrace()
        sys.settrace(interrupter if expected > 4 else before)
        try:
            outputs = pipe.share_outputs()
        except KeyboardInterrupt:
            outputs = None
        finally:
            sys.settrace(before)
        if outputs is None:
            number += 1
            outputs = pipe.share_outputs()
        assert number_of(outputs) == expected, number
        expected += 1
        pipe.release_outputs()
        pipe.schedule_run()
        if interrupter.helped and interrupter.left > 0:
            break
    assert number > 100


def test_an_error_of_a_handler_comes_up_and_nothing_is_lost(emulated_gpu, monkeypatch):
    choose(monkeypatch, inline=True)
    pipe, numbers = counting(), itertools.count()

    def run():
        outputs = pipe.run()
        assert number_of(outputs) == next(numbers)

    for _ in range(3):
        run()
    run_until_a_handler_raises(GpuProgram, "run", run, monkeypatch)
    for _ in range(3):
        run()
