from __future__ import annotations

import itertools

import numpy as np
import pytest

from headrace import Pipeline, fn
from headrace.errors import ShapeError
from headrace.types import DALIDataType
from tests.support.run_operator import run_operator

SHAPES = [(5, 60, 3), (2, 3, 4, 5, 6), (200, 3), (3, 200), (7, 1, 70), (1, 1, 1), (50,)]


def normalize(data, **arguments):
    return run_operator("normalize", data, **arguments)


def noise(*shape, dtype="float32", seed=0):
    return (np.random.default_rng(seed).random(shape) * 100).astype(dtype)


@pytest.mark.sweep
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", ["uint8", "float32", "int32"])
def test_every_set_of_axes(shape, dtype):
    # Whole numbers: a mean rounded to float32 may not matter next to the deviation.
    data = np.round(noise(*shape)).astype(dtype)
    for count in range(1, len(shape) + 1):
        for axes in itertools.combinations(range(len(shape)), count):
            exact = data.astype(np.float64)
            mean = exact.mean(axes, keepdims=True)
            deviation = exact.std(axes, keepdims=True)
            expected = np.divide(
                exact - mean, deviation, out=np.zeros_like(exact), where=deviation != 0
            )
            np.testing.assert_allclose(normalize(data, axes=axes), expected, atol=2e-5, rtol=1e-5)


def test_large_integers_keep_their_digits():
    data = (np.arange(12) + 10**9).astype(np.int32).reshape(3, 4)
    expected = (np.arange(12) - 5.5) / np.arange(12).std()
    np.testing.assert_allclose(normalize(data).ravel(), expected, rtol=1e-6)


def test_large_mean_in_floating_point():
    data = (np.arange(12) + 10**6).astype(np.float32).reshape(3, 4)
    expected = (np.arange(12) - 5.5) / np.arange(12).std()
    np.testing.assert_allclose(normalize(data).ravel(), expected, rtol=1e-6)


def test_not_a_number_stays_in_its_group():
    data = noise(4, 6)
    data[1, 2], data[2, 3] = np.nan, np.inf
    out = normalize(data, axes=1)
    assert np.isnan(out[1:3]).all()
    assert np.isfinite(out[[0, 3]]).all()


def test_mean_and_deviation_may_be_broadcast_against_each_other():
    data = noise(5, 6, 3)
    mean, deviation = noise(1, 6, 1, seed=1), noise(1, 1, 3, seed=2) + 1
    np.testing.assert_allclose(
        normalize(data, mean=mean, stddev=deviation), (data - mean) / deviation, rtol=1e-5
    )


def test_views_are_read_in_place():
    data = noise(40, 50, 3, dtype="uint8")
    for view in (data[5:20, 3:40], data[::-1], data[:, ::-1], data.transpose(1, 0, 2)):
        np.testing.assert_array_equal(
            normalize(view, axes=(0, 1)), normalize(np.ascontiguousarray(view), axes=(0, 1))
        )


def test_integers_saturate():
    out = normalize(
        np.array([-5, -0.5, 0.5, 1.5, 500], np.float32), mean=0, stddev=1, dtype=DALIDataType.UINT8
    )
    np.testing.assert_array_equal(out, [0, 0, 1, 2, 255])


def test_shape_error_says_what_is_expected():
    with pytest.raises(ShapeError, match=r"\(1, 1, 2\).*\(5, 6, 3\)"):
        normalize(noise(5, 6, 3), mean=np.ones((1, 1, 2), np.float32))


def test_a_batch_of_single_numbers():
    pipe = Pipeline(batch_size=2, num_threads=1, device_id=None)
    with pipe:
        numbers = fn.external_source(source=lambda: [np.int16(1), np.int16(5)], batch=True)
        pipe.set_outputs(fn.normalize(numbers, batch=True))
    assert pipe.run()[0].as_array().tolist() == [-1.0, 1.0]
