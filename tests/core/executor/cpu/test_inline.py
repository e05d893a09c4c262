"""Inline execution on the CPU: light iterations that the consumer's thread does as a whole."""

from __future__ import annotations

import sys
import threading

import numpy as np
import pytest

from headrace import Pipeline, fn, types
from headrace.errors import BadSampleError
from headrace.executor.cpu.inline import InlineCarrier
from headrace.executor.cpu.runner import SampleRunner
from headrace.executor.inline_choice import InlineChoice
from tests.support.interrupter import Interrupter, run_until_a_handler_raises


@pytest.fixture(autouse=True)
def with_threads(monkeypatch):
    """Worker processes have no part in this."""
    monkeypatch.setenv("HEADRACE_WORKERS", "threads")


def choose(monkeypatch, *, inline):
    """Have the consumer do iterations, or none."""
    monkeypatch.setattr(InlineChoice, "begin_waiting", lambda _choice, _now: inline)
    monkeypatch.setattr(InlineCarrier, "_is_light", lambda _carrier: True)


@pytest.fixture
def carriers(monkeypatch):
    """Names of the threads that carried samples."""
    found = []
    run = SampleRunner.run

    def noted(self, indices):
        found.append(threading.current_thread().name)
        return run(self, indices)

    monkeypatch.setattr(SampleRunner, "run", noted)
    return found


def batch_of(info, size):
    random = np.random.default_rng(info.iteration)
    return random.integers(0, 256, (size, 12, 12, 3), np.uint8)


def augmenting(size, *, threads=1, **settings):
    """A pipeline that crops, mirrors and normalises images, each iteration others."""
    pipe = Pipeline(size, threads, None, seed=5, **settings)
    with pipe:
        images = fn.external_source(
            source=lambda info: batch_of(info, size), batch_info=True, layout="HWC"
        )
        images = fn.crop(images, crop=(8, 8), crop_pos_x=fn.random.uniform(range=[0.0, 1.0]))
        flips = fn.random.coin_flip()
        images = fn.brightness(fn.flip(images, horizontal=flips), brightness=1.25)
        images = fn.crop_mirror_normalize(images, dtype=types.FLOAT, mean=[100.0], std=[50.0])
        pipe.set_outputs(images, flips)
    return pipe


def values(outputs):
    return [np.array(batch.as_array()) for batch in outputs]


def samples(outputs):
    return [[np.array(batch.at(k)).tolist() for k in range(len(batch))] for batch in outputs]


@pytest.mark.parametrize("size", [1, 3, 20])
def test_values_do_not_depend_on_who_does_the_work(size, monkeypatch):
    found = []
    for is_inline in (True, False):
        choose(monkeypatch, inline=is_inline)
        pipe = augmenting(size)
        found.append([values(pipe.run()) for _ in range(6)])
    for ours, theirs in zip(*found, strict=True):
        for a, b in zip(ours, theirs, strict=True):
            np.testing.assert_array_equal(a, b)


def test_the_consumer_does_it_all(carriers, monkeypatch):
    choose(monkeypatch, inline=True)
    pipe = augmenting(2, threads=2)
    for _ in range(3):
        pipe.run()
    carriers.clear()  # workers were quicker with the first
    for _ in range(8):
        pipe.run()
    assert set(carriers) == {threading.current_thread().name}


def test_workers_go_on_with_what_the_consumer_leaves(carriers, monkeypatch):
    choose(monkeypatch, inline=True)
    pipe = augmenting(2, prefetch_queue_depth=3)
    for _ in range(4):
        pipe.run()
    choose(monkeypatch, inline=False)
    pipe.run()
    carriers.clear()
    for _ in range(4):
        pipe.run()
    assert threading.current_thread().name not in carriers


def test_batches_are_awaited_where_all_are_to_be_done(monkeypatch):
    choose(monkeypatch, inline=True)
    pipe = augmenting(2, exec_async=False, exec_pipelined=False)
    expected = augmenting(2)
    for _ in range(4):
        for a, b in zip(values(pipe.run()), values(expected.run()), strict=True):
            np.testing.assert_array_equal(a, b)


def test_samples_that_cannot_be_planned_together_are_no_error(carriers, monkeypatch):
    choose(monkeypatch, inline=True)
    pipe = Pipeline(2, 1, None)
    with pipe:
        data = fn.external_source(lambda: [np.arange(3), np.arange(5, 9)])
        pipe.set_outputs(data[1])
    pipe.run()  # workers were quicker
    carriers.clear()
    for _ in range(6):
        assert values(pipe.run())[0].tolist() == [1, 6]
    assert set(carriers) == {threading.current_thread().name}


def windowed(policy):
    """A pipeline whose second sample cannot be cut in every third iteration."""
    pipe = Pipeline(2, 1, None, on_bad_sample=policy)
    with pipe:
        data = fn.external_source(
            source=lambda info: np.full((2, 4, 3), info.iteration, np.int32), batch_info=True
        )
        start = fn.external_source(
            source=lambda info: np.array([[0], [9 * (info.iteration % 3 == 1)]], np.int32),
            batch_info=True,
        )
        pipe.set_outputs(fn.slice(data, start=start, shape=[2], axes=[0]) * 1)
    return pipe


def test_errors_are_those_of_their_sample(monkeypatch):
    choose(monkeypatch, inline=True)
    pipe = windowed("raise")
    for number in range(9):
        if number % 3 == 1:
            with pytest.raises(IndexError, match="sample 1"):
                pipe.run()
        else:
            assert np.unique(pipe.run()[0].as_array()).tolist() == [number]


def test_bad_samples_are_replaced_once(monkeypatch):
    choose(monkeypatch, inline=True)
    pipe = windowed("replace")
    for number in range(7):
        assert np.unique(pipe.run()[0].as_array()).tolist() == [number]
    assert [(bad.iteration, bad.index) for bad in pipe.bad_samples][:2] == [(1, 1), (4, 1)]


def test_an_error_of_a_handler_comes_up_and_nothing_is_lost(carriers, monkeypatch):
    choose(monkeypatch, inline=True)
    pipe = augmenting(2)
    expected = augmenting(2)
    found = []

    def run():
        found.append(values(pipe.run()))

    for _ in range(3):
        run()
    run_until_a_handler_raises(SampleRunner, "_run", run, monkeypatch)
    for _ in range(3):
        run()
    for ours in found:
        for a, b in zip(ours, values(expected.run()), strict=True):
            np.testing.assert_array_equal(a, b)


def test_what_a_ctrl_c_interrupts_is_done_once_more(monkeypatch):
    choose(monkeypatch, inline=True)
    pipe = Pipeline(2, 1, None, seed=3)
    with pipe:
        numbers = fn.external_source(
            source=lambda info: np.full((2, 70), info.iteration, np.int32), batch_info=True
        )
        pipe.set_outputs(numbers * 3, fn.random.uniform())
    pipe.schedule_run()
    expected, number = 0, 1
    while True:
        interrupter, before = Interrupter(number, "_carry"), sys.gettrace()
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
        assert np.unique(outputs[0].as_array()).tolist() == [3 * expected], number
        expected += 1
        pipe.release_outputs()
        pipe.schedule_run()
        if interrupter.helped and interrupter.left > 0:
            break
    assert number > 100


ORDERS = {
    "in order": {},
    "padded": {"pad_last_batch": True},
    "window": {"random_shuffle": True, "initial_fill": 3},
    "all": {"shuffle_after_epoch": True},
    "shards": {"num_shards": 2, "shard_id": 1, "random_shuffle": True},
}


def reading(root, order, **settings):
    """A pipeline that reads five files, two at a time."""
    pipe = Pipeline(2, 1, None, seed=11, **settings)
    with pipe:
        files, labels = fn.readers.file(file_root=str(root), name="reader", **order)
        pipe.set_outputs(files, labels * 10, fn.random.uniform())
    return pipe


@pytest.fixture
def root(tmp_path):
    for k in range(5):
        folder = tmp_path / str(k)
        folder.mkdir()
        folder.joinpath("x.jpg").write_bytes(bytes([k]) * (k + 1))
    return tmp_path


@pytest.mark.parametrize("order", ORDERS)
def test_readers_draw_in_the_consumers_thread(order, root, carriers, monkeypatch):
    choose(monkeypatch, inline=False)
    pipe = reading(root, ORDERS[order])
    expected = [samples(pipe.run()) for _ in range(12)]
    choose(monkeypatch, inline=True)
    pipe = reading(root, ORDERS[order])
    found = [samples(pipe.run())]
    carriers.clear()
    found += [samples(pipe.run()) for _ in range(11)]
    assert threading.current_thread().name in carriers
    assert found == expected


@pytest.mark.parametrize("order", ORDERS)
def test_what_a_ctrl_c_interrupts_is_drawn_once_more(order, root, monkeypatch):
    choose(monkeypatch, inline=False)
    expected = reading(root, ORDERS[order])
    choose(monkeypatch, inline=True)
    pipe = reading(root, ORDERS[order])
    pipe.schedule_run()
    done = False
    number = 1
    while not done:
        interrupter, before = Interrupter(number, "_carry"), sys.gettrace()
        sys.settrace(interrupter)
        try:
            outputs = pipe.share_outputs()
        except KeyboardInterrupt:
            outputs = None
        finally:
            sys.settrace(before)
        if outputs is None:
            number += 1
            outputs = pipe.share_outputs()
        done = interrupter.helped and interrupter.left > 0
        assert samples(outputs) == samples(expected.run()), number
        pipe.release_outputs()
        pipe.schedule_run()
    assert number > 100


@pytest.mark.parametrize("policy", ["raise", "skip", "replace"])
def test_a_file_that_is_gone_is_found_by_workers(policy, root, monkeypatch):
    found = []
    for is_inline in (False, True):
        choose(monkeypatch, inline=is_inline)
        pipe = Pipeline(2, 1, None, seed=11, on_bad_sample=policy, prefetch_queue_depth=1)
        with pipe:
            files, labels = fn.readers.file(file_root=str(root))
            pipe.set_outputs(files, labels * 10)
        steps = [samples(pipe.run())]
        root.joinpath("4", "x.jpg").rename(root / "away")
        for _ in range(9):
            try:
                steps.append(samples(pipe.run()))
            except BadSampleError as error:
                steps.append(str(error).partition("'")[0])
        root.joinpath("away").rename(root / "4" / "x.jpg")
        found.append((steps, [(bad.iteration, bad.index) for bad in pipe.bad_samples]))
    assert found[0] == found[1]
