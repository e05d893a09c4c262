"""Pipelines made anew of the definition of another one, as the TensorFlow plugin does."""

from __future__ import annotations

import numpy as np

from headrace import Pipeline, fn, pipeline_def, types


def test_python_code_is_in_it():
    """A source, a Python function, a guard, a sink, a random operator with a seed of its own."""
    seen = []

    @pipeline_def(batch_size=3, num_threads=1, device_id=None, seed=4, enable_conditionals=True)
    def definition():
        numbers = fn.external_source(source=[np.arange(3), np.arange(3, 6)], name="numbers")
        if numbers > 1:
            found = fn.python_function(numbers, function=lambda n: np.asarray(n * 10))
        else:
            found = numbers + 100
        fn.python_function(found, function=lambda n: seen.append(int(n)), num_outputs=0)
        return found, fn.random.uniform(seed=7), fn.random.uniform()

    pipe = definition()
    first = [np.concatenate([np.asarray(o.as_array()).ravel() for o in pipe.run()]) for _ in "12"]
    copy = Pipeline._copy_of(pipe, {}, {"batch_size": 3})
    again = [np.concatenate([np.asarray(o.as_array()).ravel() for o in copy.run()]) for _ in "12"]
    assert np.array_equal(first, again)
    assert first[0][:3].tolist() == [100, 101, 20]
    assert sorted(seen) == sorted([100, 101, 20, 30, 40, 50] * 2)


def test_settings_and_arguments_are_replaced():
    pipe = Pipeline(2, 1, None, prefetch_queue_depth=3)
    with pipe:
        images = fn.external_source(name="images", dtype=types.UINT8)
        pipe.set_outputs(fn.reductions.sum(images, axes=[0]))
    source = np.ones((5, 4), np.uint8)
    copy = Pipeline._copy_of(pipe, {"images": {"source": [source]}}, {"batch_size": 5})
    assert copy.max_batch_size == 5
    assert copy.prefetch_queue_depth == 3
    (out,) = copy.run()
    assert np.ravel(out.as_array()).tolist() == [4] * 5
    assert pipe.max_batch_size == 2
