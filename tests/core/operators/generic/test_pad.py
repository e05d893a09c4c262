from __future__ import annotations

import numpy as np
import pytest

from headrace import Pipeline, fn
from headrace.errors import ArgumentValueError, ShapeError
from tests.support.run_operator import run_operator


def outputs(rows, **arguments):
    pipe = Pipeline(len(rows), 2, None)
    with pipe:
        data = fn.external_source(lambda: rows)
        pipe.set_outputs(fn.pad(data, **arguments))
    return [np.array(sample) for sample in pipe.run()[0]]


def padded(data, shape, value=0):
    return np.pad(
        data, [(0, s - d) for s, d in zip(shape, data.shape, strict=True)], constant_values=value
    )


def test_the_largest_sample_decides():
    rows = [np.ones((n, 5 - n), np.int16) for n in range(1, 5)]
    for row, out in zip(rows, outputs(rows, fill_value=3), strict=True):
        np.testing.assert_array_equal(out, padded(row, (4, 4), 3))


def test_known_shapes_need_no_batch():
    data = np.arange(6, dtype=np.float64).reshape(2, 3)
    out = run_operator("pad", data, shape=(3, 4), align=5, fill_value=0.5)
    np.testing.assert_array_equal(out, padded(data, (5, 5), 0.5))
    assert run_operator("pad", data, shape=1) is data


def test_samples_of_the_right_shape_are_not_copied_wrongly():
    rows = [np.full((3, 3), 1, np.uint8), np.full((1, 3), 2, np.uint8)]
    first, second = outputs(rows)
    np.testing.assert_array_equal(first, rows[0])
    np.testing.assert_array_equal(second, padded(rows[1], (3, 3)))


def test_errors_say_what_to_give():
    data = np.zeros((2, 3), np.float32)
    with pytest.raises(ShapeError, match="`shape` has 3 values, but 2 axes are padded"):
        run_operator("pad", data, shape=(1, 2, 3))
    with pytest.raises(ArgumentValueError, match="`align` argument must be positive"):
        run_operator("pad", data, shape=1, align=0)
    with pytest.raises(ShapeError, match="Single numbers"):
        run_operator("pad", np.float32(1)[()] * np.ones((), np.float32))


def test_errors_name_the_sample():
    rows = [np.zeros(3, np.float32), np.zeros(2, np.float32)]
    values = [np.array([1], np.int32), np.array([0], np.int32)]
    pipe = Pipeline(2, 2, None)
    with pipe:
        data, align = fn.external_source(lambda: (rows, values), num_outputs=2)
        pipe.set_outputs(fn.pad(data, align=align))
    with pytest.raises(ArgumentValueError, match=r"sample 1"):
        pipe.run()
