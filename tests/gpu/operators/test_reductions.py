"""Reductions on the GPU give what they give on the CPU."""

from __future__ import annotations

import numpy as np
import pytest

from headrace.errors import ShapeError
from headrace.types import DALIDataType
from tests.support.gpu.run_operator import run_cpu_operator_on_batch, run_gpu_operator

INTEGERS_OF = {"uint8": DALIDataType.UINT64, "int16": DALIDataType.INT64}
SHAPES = [(7, 9, 3), (1, 1, 3), (40, 100, 3), (2, 0, 3)]
AXES = [None, (0, 1), (2,), (0,), (0, 2), ()]


def batch(dtype, shapes=SHAPES):
    rng = np.random.default_rng(0)
    return [(rng.standard_normal(s) * 60).astype("int16").astype(dtype) for s in shapes]


def same(name, *inputs, **arguments):
    name = f"reductions.{name}"
    arguments = {key: value for key, value in arguments.items() if value is not None}
    found = run_gpu_operator(name, *inputs, **arguments)
    with np.errstate(all="ignore"):
        expected = run_cpu_operator_on_batch(name, *inputs, **arguments)
    for got, wanted in zip(found, expected, strict=True):
        assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape)
        if got.dtype.kind == "f":
            np.testing.assert_allclose(got, wanted, rtol=1e-6)
        else:
            np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32"])
def test_reductions_along_axes(dtype):
    data = batch(dtype)
    for axes in AXES:
        for name in ("max", "min", "sum", "mean", "mean_square", "rms"):
            same(name, data, axes=axes, keep_dims=axes == (0,))


def test_integer_results():
    for dtype, wide in INTEGERS_OF.items():
        own = DALIDataType[dtype.upper()]
        same("sum", batch(dtype), axes=(0, 1), dtype=own)
        same("mean", batch(dtype, SHAPES[:3]), dtype=own)
        same("mean_square", batch(dtype), axes=(0,), dtype=wide)
        same("rms", batch(dtype, SHAPES[:3]), dtype=own)


def test_distances_to_a_mean():
    data = batch("uint8", SHAPES[:3])
    for axes, shape in ((None, ()), ((0, 1), (3,)), ((0, 1), (1,))):
        mean = [np.full(shape, k, np.float32) for k in range(3)]
        for name in ("variance", "std_dev"):
            same(name, data, mean, axes=axes, ddof=1 if axes else 0)
    means = [np.zeros(3, np.float32), np.zeros(2, np.float32), np.zeros(3, np.float32)]
    with pytest.raises(ShapeError, match=r"`mean` has 2 elements[^$]*sample 1"):
        run_gpu_operator("reductions.variance", data, means, axes=(0, 1))


def test_not_a_number_and_infinity():
    data = [np.float32([1, np.nan, 3]), np.float32([np.nan]), np.float32([-np.inf, np.inf])]
    for name in ("max", "min"):
        same(name, data)


def test_long_groups_are_reduced_in_parts():
    data = batch("uint8", [(300, 200), (3, 90)])
    for axes in (None, (0,), (1,)):
        same("sum", data, axes=axes)


def test_axes_in_too_many_places():
    with pytest.raises(ShapeError, match="more than 4 places"):
        run_gpu_operator("reductions.sum", [np.zeros((1,) * 10, np.uint8)], axes=(0, 2, 4, 6, 8))
