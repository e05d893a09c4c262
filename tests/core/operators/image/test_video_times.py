"""Frames by time: `timestamps` and `fps` of `decoders.video`."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from headrace import fn, pipeline_def
from headrace.errors import ArgumentValueError, MisusedArgumentError
from headrace.experimental import dynamic as ndd
from tests.support.videos import write_video

FRAMES = 24


def encoded(**options):
    return np.frombuffer(write_video(frames=FRAMES, size=(32, 48), **options), np.uint8)


STEADY = encoded(rate=Fraction(24))
TIMES = np.cumsum([0, *([1, 3, 2, 6] * 6)])[:FRAMES]  # of 1/24 second
VARYING = encoded(times=TIMES.tolist(), time_base=Fraction(1, 24))


def decoded(data, **options):
    @pipeline_def(batch_size=1, num_threads=1, device_id=None)
    def define():
        return fn.decoders.video(fn.external_source(lambda: [data]), **options)

    return np.array(define().run()[0][0])


def check(data, numbers, **options):
    whole = decoded(data)
    np.testing.assert_array_equal(decoded(data, **options), whole[numbers])


@pytest.mark.parametrize(("data", "times"), [(STEADY, np.arange(FRAMES)), (VARYING, TIMES)])
def test_the_frame_that_is_shown_at_a_time(data, times):
    asked = [0.0, 0.5, 0.26, 0.9, 0.5]
    numbers = [int(np.flatnonzero(times <= t * 24)[-1]) for t in asked]
    check(data, numbers, timestamps=asked)
    # A time that is a frame's own, as a reader tells it.
    check(data, list(range(FRAMES)), timestamps=(times / 24).tolist())


def test_times_of_each_sample():
    @pipeline_def(batch_size=2, num_threads=2, device_id=None)
    def define():
        times = fn.external_source(lambda: [np.float32([0.1]), np.float32([0.5, 0.0])])
        return fn.decoders.video(fn.external_source(lambda: [STEADY] * 2), timestamps=times)

    first, second = (np.array(sample) for sample in define().run()[0])
    whole = decoded(STEADY)
    np.testing.assert_array_equal(first, whole[[2]])
    np.testing.assert_array_equal(second, whole[[12, 0]])
    eager = ndd.decoders.video(ndd.as_tensor(STEADY), timestamps=[0.5, 0.0])
    np.testing.assert_array_equal(np.array(eager.cpu()), second)


@pytest.mark.parametrize(
    ("fps", "more", "numbers"),
    [
        (12.0, {}, range(0, 24, 2)),
        (48.0, {"sequence_length": 5}, [0, 0, 1, 1, 2]),
        (8.0, {"start_frame": 4, "sequence_length": 3}, [4, 7, 10]),
        (8.0, {"start_frame": 4, "end_frame": 12}, [4, 7, 10]),
        (6.0, {"start_frame": 16, "sequence_length": 4, "pad_mode": "edge"}, [16, 20, 23, 23]),
        (6.0, {"start_frame": 16, "sequence_length": 4, "pad_mode": "none"}, [16, 20]),
    ],
)
def test_a_rate(fps, more, numbers):
    check(STEADY, list(numbers), fps=fps, **more)


def test_a_rate_of_a_video_whose_own_varies():
    numbers = [int(np.flatnonzero(t >= TIMES)[-1]) for t in range(0, int(TIMES[-1]), 4)]
    check(VARYING, numbers, fps=6.0, sequence_length=len(numbers))


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"timestamps": [0.0], "frames": [1]}, MisusedArgumentError),
        ({"timestamps": [0.0], "fps": 2.0}, MisusedArgumentError),
        ({"fps": 2.0, "stride": 2}, MisusedArgumentError),
        ({"fps": 0.0}, ArgumentValueError),
        ({"timestamps": [9.0], "pad_mode": "none"}, ArgumentValueError),
        ({"timestamps": [-1.0], "pad_mode": "none"}, ArgumentValueError),
    ],
)
def test_what_does_not_go(options, error):
    with pytest.raises(error):
        decoded(STEADY, **options)
