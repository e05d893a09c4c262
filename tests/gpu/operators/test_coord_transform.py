"""`coord_transform` on the GPU gives what it gives on the CPU."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from headrace.errors import ArgumentValueError, ShapeError
from headrace.types import DALIDataType
from tests.support.gpu.alike import check_alike
from tests.support.gpu.run_operator import run_gpu_operator

same = partial(check_alike, "coord_transform")


def points(n=2, dtype="float32"):
    rng = np.random.default_rng(n)
    shapes = [(1, n), (700, n), (0, n), (33, n)]
    return [(rng.random(shape) * 200).astype(dtype) for shape in shapes]


def maps(*shape):
    return list(np.random.default_rng(1).normal(size=(4, *shape)).astype(np.float32))


@pytest.mark.sanitize
@pytest.mark.parametrize("n", [1, 2, 3, 6])
def test_maps_by_sample(n):
    for m in (1, n, 6):
        same(points(n), MT=maps(m, n + 1))
        same(points(n), M=maps(m, n), T=maps(m))
    same(points(n), T=maps(n))
    same(points(n), M=[np.float32(k) for k in range(4)])


def test_constants():
    same(points(), M=(1, 2, 3, 4.5), T=(1, 2))
    same(points(), MT=(1, 2, 3, 4.5, 5, 6, 7, 8, 9))
    same(points(), M=2.5, T=1.5)
    same(points())
    same(points(), M=(1, 2, 3, 4.5), T=maps(2))


@pytest.mark.parametrize("dtype", ["uint8", "int16", "uint16", "int32", "float32"])
def test_types(dtype):
    same(points(2, dtype), MT=maps(2, 3))
    target = getattr(DALIDataType, {"float32": "FLOAT"}.get(dtype, dtype.upper()))
    same(points(2, dtype), MT=maps(2, 3), dtype=target)


def test_frames():
    data = [np.ones((3, 5, 2), np.float32), np.ones((2, 9, 2), np.float32)]
    given = [np.random.default_rng(k).normal(size=(k, 2, 3)).astype("f4") for k in (3, 2)]
    same(data, layout="FAB", MT=given, arg_layouts={"MT": "F**"})
    same(data, layout="FAB", T=(1, 2))
    same([row[0] for row in data], layout="AB", MT=given, arg_layouts={"MT": "F**"})


def test_different_numbers_of_coordinates():
    data = [np.ones((3, 2), np.float32), np.ones((3, 3), np.float32)]
    same(data, T=1.5)
    same(data, M=2.0, T=[np.float32(1), np.float32(2)])


def test_bad_maps():
    with pytest.raises(ShapeError, match="columns"):
        run_gpu_operator("coord_transform", points(), M=maps(2, 3))
    with pytest.raises(ArgumentValueError, match="numbers"):
        run_gpu_operator("coord_transform", points(), M=(1, 2, 3))
