"""`cast` and `cast_like` on the GPU."""

from __future__ import annotations

import numpy as np
import pytest

from headrace.types import DALIDataType as T
from tests.support.gpu.alike import check_alike
from tests.support.gpu.run_operator import run_gpu_operator

SHAPES = [(5, 7, 3), (33, 47, 3), (1, 1, 1), (0, 3, 3), (90, 70, 3)]


def batch(dtype, shapes=SHAPES):
    rng = np.random.default_rng(0)
    return [(rng.standard_normal(s) * 200).astype(dtype) for s in shapes]


@pytest.mark.sweep
@pytest.mark.parametrize("scattered", [False, True])
@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("float32", T.UINT8),
        ("uint8", T.FLOAT),
        ("int16", T.UINT8),
        ("float32", T.FLOAT16),
        ("float16", T.INT32),
        ("int64", T.BOOL),
        ("bool", T.FLOAT64),
    ],
)
def test_cast(source, target, scattered):
    check_alike("cast", batch(source), dtype=target, scattered=scattered)


@pytest.mark.parametrize("shape", [(), (1,), (17,), (4, 0), (2, 3, 4, 5, 6, 1)])
def test_shapes(shape):
    check_alike("cast", batch("float32", [shape] * 3), dtype=T.UINT8)


def test_one_sample_and_many():
    check_alike("cast", batch("float32", [(21, 2)]), dtype=T.UINT8)
    check_alike("cast", batch("float32", [(n % 7, 2) for n in range(100)]), dtype=T.UINT8)


def test_samples_of_one_shape_are_computed_together(emulated_gpu):
    got = run_gpu_operator("cast", batch("int16", [(9, 3)] * 50), dtype=T.FLOAT)
    assert len(got) == 50
    assert list(emulated_gpu.launches) == ["pointwise<Body>"]


def test_large_samples_take_several_blocks():
    check_alike("cast", batch("uint8", [(150, 200, 3), (301, 99, 3)]), dtype=T.FLOAT)


def test_same_type(emulated_gpu):
    check_alike("cast", batch("int16"), dtype=T.INT16)
    assert not emulated_gpu.launches


def test_cast_like():
    check_alike("cast_like", batch("float32"), batch("uint16"))
