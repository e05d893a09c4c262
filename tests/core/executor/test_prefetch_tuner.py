"""How many iterations are in progress."""

from __future__ import annotations

import time

import numpy as np

import headrace
from headrace import fn
from headrace.executor.iteration import DONE
from headrace.executor.prefetch_tuner import PrefetchTuner


def test_it_widens_up_to_the_most_and_narrows_down_to_the_least():
    tuner = PrefetchTuner(2, 5)
    assert tuner.varies
    for expected in (3, 4, 5, 5):
        tuner.widen()
        assert tuner.now == expected
    for _ in range(4):
        tuner.note_taken([True] * 4)
    assert tuner.now == 5  # nobody knows yet whether the consumer is slow
    tuner.note_taken([True] * 4)
    assert tuner.now == 3  # two are always finished before anybody asks for them
    for _ in range(1000):
        tuner.note_taken([True] * 2)
    assert tuner.now == 2


def test_it_stays_where_the_consumer_waits_and_then_takes_many_at_once():
    tuner = PrefetchTuner(2, 5)
    for _ in range(3):
        tuner.widen()
    for _ in range(3):
        for finished in (3, 2, 1, 0):
            tuner.note_taken([True] * finished + [False] + [True] * (3 - finished))
    assert tuner.now == 5


def test_it_narrows_now_and_then_where_workers_are_busy():
    tuner = PrefetchTuner(2, 5)
    tuner.widen()
    taken = 0
    while tuner.now > 2:
        tuner.note_taken([])
        taken += 1
        assert taken < 1000
    assert taken > 10


def test_what_a_start_has_begun_too_many_of_goes_soon():
    tuner = PrefetchTuner(2, 24)
    for _ in range(22):
        tuner.widen()
    assert tuner.now == 24
    for _ in range(1500):
        tuner.note_taken([False] * tuner.now)
    assert tuner.now <= 7


def test_fewer_are_tried_rarely_where_that_is_too_few():
    tuner = PrefetchTuner(2, 5)
    for _ in range(3):
        tuner.widen()
    tries = 0
    for _ in range(20_000):
        tuner.note_taken([False] * 4)
        if tuner.now < 5:
            tuner.widen()
            tries += 1
    assert 5 < tries < 30


def test_nothing_varies_where_the_depth_is_the_most():
    tuner = PrefetchTuner(3, 1)
    assert (tuner.now, tuner.most, tuner.varies) == (3, 3, False)


def test_batches_in_progress_follow_the_consumer(tmp_path):
    for k in range(8):
        np.full((64, 64), k, np.uint8).tofile(tmp_path / f"{k}.bin")

    @headrace.pipeline_def(batch_size=4, num_threads=4, device_id=None, workers="processes")
    def pipeline():
        data, _ = fn.readers.file(file_root=str(tmp_path), files=[f"{k}.bin" for k in range(8)])
        return fn.resize(fn.reshape(data, shape=[64, 64, 1], layout="HWC"), size=(300, 300))

    pipe = pipeline()
    pipe.build()
    tuner = pipe._executor._schedule.tuner
    for _ in range(500):  # as fast as it can
        pipe.run()
        if tuner.now > 3:
            break
    assert tuner.now > 3
    for _ in range(500):  # and slowly: all that has begun is finished by then
        pipe.run()
        scheduled = pipe._executor.scheduled()
        while sum(i.state is DONE for i in scheduled) < min(tuner.now, len(scheduled)):
            time.sleep(0.001)
        if tuner.now <= 3:
            break
    assert tuner.now <= 3
