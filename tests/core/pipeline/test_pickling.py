"""Pipelines that are pickled or copied: refused, with what to do in place of it."""

from __future__ import annotations

import copy
import pickle

import pytest

from headrace import Pipeline, fn, pipeline_def


@pipeline_def(batch_size=2, num_threads=1, device_id=None)
def numbers():
    return fn.random.uniform(shape=[3])


@pytest.mark.parametrize("is_built", [False, True])
@pytest.mark.parametrize("function", [pickle.dumps, copy.copy, copy.deepcopy])
def test_pipelines_are_not_copied(function, is_built):
    pipe = numbers()
    if is_built:
        pipe.build()
        pipe.run()
    with pytest.raises(TypeError, match=r"(?s)cannot be pickled or copied.*`serialize`"):
        function(pipe)
    assert pipe.run()[0].as_array().shape == (2, 3)


def test_what_the_message_says_works():
    other = Pipeline.deserialize(numbers().serialize(), batch_size=2, num_threads=1)
    assert other.run()[0].as_array().shape == (2, 3)
