"""Input sets of a call draw the same numbers, however their pipeline is run or kept."""

from __future__ import annotations

import numpy as np
import pytest

import headrace
from headrace import Pipeline, fn
from headrace.pipeline import experimental

SETTINGS = {"batch_size": 3, "num_threads": 2, "device_id": None, "seed": 5}
LIKE = np.zeros(4, np.float32)


@experimental.pipeline_def(**SETTINGS, enable_conditionals=True)
def definition():
    sets = fn.random.normal([fn.external_source(lambda: [LIKE] * 3) for _ in range(3)], name="n")
    if fn.random.coin_flip(dtype=headrace.types.BOOL):
        image, mask = fn.random.uniform([sets[0], sets[1]], range=[2, 3])
    else:
        image, mask = fn.random.uniform([sets[1], sets[0]])
    return sets[1], sets[2], image, mask


@headrace.pipeline_def(**SETTINGS, enable_checkpointing=True)
def plain():
    like = [fn.constant(fdata=[0.0, 0.0]) for _ in range(3)]
    return (*fn.random.uniform(like)[1:], fn.random.normal())


def batches(pipe, count=2):
    return [[np.stack([np.array(s) for s in out]) for out in pipe.run()] for _ in range(count)]


def assert_alike(found, expected):
    for one, other in zip(found, expected, strict=True):
        for a, b in zip(one, other, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("settings", [{}, {"debug": True}, {"workers": "processes"}])
def test_wherever_they_run(settings):
    expected = batches(definition())
    for first, second, image, mask in expected:
        np.testing.assert_array_equal(first, second)
        np.testing.assert_array_equal(image, mask)
    assert_alike(batches(definition(**settings)), expected)


def test_without_a_seed():
    for first, second, image, mask in batches(definition(seed=None)):
        np.testing.assert_array_equal(first, second)
        np.testing.assert_array_equal(image, mask)


def test_serialized_copied_and_resumed():
    """The first set is not run, and not kept."""
    pipe = plain()
    expected = batches(pipe)
    np.testing.assert_array_equal(expected[0][0], expected[0][1])
    assert_alike(batches(Pipeline.deserialize(pipe.serialize())), expected)
    assert_alike(batches(Pipeline._copy_of(plain(), {}, {})), expected)
    resumed = plain(checkpoint=pipe.checkpoint(), seed=1)
    assert_alike(batches(resumed), batches(pipe))
