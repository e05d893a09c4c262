"""Random operators in pipelines: nothing about how a pipeline runs changes a number."""

from __future__ import annotations

import numpy as np
import pytest

from headrace import fn, types
from headrace.pipeline import Pipeline


def graph():
    low_high = types.Constant(np.float32([-1, 1]), device="cpu")
    # The first is drawn for a whole batch at once, the second sample by sample.
    return (
        fn.random.uniform(range=[-1.0, 1.0], shape=[3], seed=5),
        fn.random.uniform(range=low_high, shape=[3], seed=5),
        fn.random.normal(shape=[4]),
        fn.random.coin_flip(probability=fn.random.uniform(range=[0.0, 1.0])),
        fn.random.choice(9, shape=[4]),
        fn.random.beta(alpha=0.3),
    )


def outputs(batch_size=6, iterations=3, seed=7, **options):
    pipe = Pipeline(
        batch_size=batch_size, device_id=None, seed=seed, **{"num_threads": 1, **options}
    )
    with pipe:
        pipe.set_outputs(*graph())
    pipe.build()
    return [
        [[np.array(batch.at(i)) for i in range(len(batch))] for batch in pipe.run()]
        for _ in range(iterations)
    ]


def assert_equal(got, want, samples):
    for a, b in zip(got, want, strict=True):
        for x, y in zip(a, b, strict=True):
            for i in range(samples):
                np.testing.assert_array_equal(x[i], y[i])


@pytest.mark.parametrize(
    "options",
    [
        {"num_threads": 4},
        {"prefetch_queue_depth": 1},
        {"num_threads": 3, "prefetch_queue_depth": 4},
    ],
    ids=str,
)
def test_the_same_numbers(options):
    assert_equal(outputs(**options), outputs(), 6)


def test_a_constant_argument_gives_what_a_tensor_gives():
    for iteration in outputs():
        np.testing.assert_array_equal(iteration[0], iteration[1])


def test_other_seeds_iterations_and_samples_give_other_numbers():
    first, second, _ = outputs()
    other = outputs(seed=8)[0]
    assert (np.array(first[2]) != np.array(second[2])).all()
    assert (np.array(first[2]) != np.array(other[2])).all()
    assert (first[2][0] != first[2][1]).all()
