"""Constants and filled tensors."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from headrace.errors import ArgumentValueError, DataTypeError, LayoutError, ShapeError
from headrace.operators.support.planning import PlanContext
from headrace.operators.support.registry import find
from headrace.operators.support.schema import Spec
from headrace.types import DALIDataType as T
from tests.support.run_operator import PlainContext, run_operator

DATA = np.arange(6, dtype=np.uint8).reshape(2, 3)


def same(got, want):
    assert got.dtype == want.dtype
    np.testing.assert_array_equal(got, want)


def test_constant_data():
    same(run_operator("constant", idata=1), np.int32([1]))
    same(run_operator("constant", fdata=[1.5, 2]), np.float32([1.5, 2]))
    same(run_operator("constant", idata=3, shape=[2, 2]), np.full((2, 2), 3, np.int32))
    same(run_operator("constant", idata=[3], shape=[]), np.asarray(3, np.int32))
    same(run_operator("constant", idata=[1, 2, 3, 4], shape=[2, 2]), np.int32([[1, 2], [3, 4]]))
    same(run_operator("constant", fdata=[]), np.zeros(0, np.float32))
    same(run_operator("constant", fdata=1.5, dtype=T.FLOAT64), np.float64([1.5]))


def test_constant_saturates_and_rounds():
    same(
        run_operator("constant", fdata=[300, -1, 1.5, 2.5, -0.5], dtype=T.UINT8),
        np.uint8([255, 0, 2, 3, 0]),
    )
    same(run_operator("constant", idata=[300, -300], dtype=T.INT8), np.int8([127, -128]))


@pytest.mark.parametrize(
    ("args", "error"),
    [
        ({}, ArgumentValueError),
        ({"idata": 1, "fdata": 1.0}, ArgumentValueError),
        ({"idata": [1, 2], "shape": [2, 2]}, ShapeError),
        ({"idata": [1], "shape": [-1]}, ShapeError),
    ],
)
def test_constant_errors(args, error):
    with pytest.raises(error):
        run_operator("constant", **args)


def test_constant_layout_that_does_not_fit():
    args = {"idata": (1, 2), "fdata": None, "dtype": None, "shape": None, "layout": "HW"}
    with pytest.raises(LayoutError):
        find("constant").cls(args).infer()


def test_constant_is_shared_but_not_writable():
    op = find("constant").cls(
        {"idata": (1, 2), "fdata": None, "dtype": None, "shape": None, "layout": "W"}
    )
    assert op.infer() == Spec(T.INT32, 1, "W")
    (values,) = op.plan(PlanContext(op.args, {}, range(3), 0, 0)).values
    assert values.tolist() == [[1, 2]] * 3
    assert np.shares_memory(values[0], values[2])
    assert not values.flags.writeable


def test_constant_tensor_keeps_its_array():
    array = np.arange(4, dtype=np.float64)
    got = run_operator("_constant_tensor", value=array, layout="W")
    same(got, array)
    array[0] = 9
    assert got[0] == 0
    op = find("_constant_tensor").cls(
        {"value": np.int32([1]), "dtype": T.INTERP_TYPE, "layout": ""}
    )
    assert op.infer().dtype is T.INTERP_TYPE


@pytest.mark.parametrize(("name", "value"), [("zeros", 0), ("ones", 1)])
def test_zeros_and_ones(name, value):
    same(run_operator(name), np.asarray(value, np.int32))
    same(run_operator(name, shape=[2, 3], dtype=T.FLOAT16), np.full((2, 3), value, np.float16))
    same(run_operator(name, shape=2, dtype=T.BOOL), np.full(2, value, bool))
    same(run_operator(name, shape=np.int32([1, 2])), np.full((1, 2), value, np.int32))
    like = run_operator(f"{name}_like", DATA, layout="HW")
    same(like, np.full((2, 3), value, np.uint8))
    same(run_operator(f"{name}_like", DATA, dtype=T.FLOAT), np.full((2, 3), value, np.float32))


def test_filled_spec():
    for name in ("zeros", "full"):
        inputs = [Spec(T.INT32, 0)] if name == "full" else []
        args = {"shape": (2, 3), "layout": "HW", "dtype": T.INT32}
        assert find(name).cls(args).infer(*inputs) == Spec(T.INT32, 2, "HW")
        with pytest.raises(LayoutError):
            find(name).cls({**args, "layout": "H"}).infer(*inputs)
        tensor = {"shape": Spec(T.INT32, 1)}
        args = {"shape": None, "layout": None, "dtype": T.INT32}
        assert find(name).cls(args, tensor).infer(*inputs) == Spec(T.INT32, None, "")
        args["layout"] = "HW"
        assert find(name).cls(args, tensor).infer(*inputs) == Spec(T.INT32, 2, "HW")
    op = find("zeros").cls(args, tensor)
    op.infer()
    with pytest.raises(ShapeError, match="2 axes"):
        op.cpu(PlainContext(SimpleNamespace(shape=(1,))))
    with pytest.raises(ShapeError, match="negative"):
        run_operator("zeros", shape=[-1])
    with pytest.raises(DataTypeError):
        run_operator("zeros", dtype=T.STRING)


def test_full():
    same(
        run_operator("full", np.float32([1, 2]), shape=[3, 2]), np.tile(np.float32([1, 2]), (3, 1))
    )
    same(run_operator("full", np.int8(5), shape=[2]), np.int8([5, 5]))
    same(run_operator("full", np.int8(5)), np.asarray(5, np.int8))
    same(run_operator("full", np.int8([[1, 2]]), shape=[2]), np.int8([1, 2]))
    with pytest.raises(ShapeError, match="broadcast"):
        run_operator("full", np.int8([1, 2, 3]), shape=[2, 2])


def test_full_like():
    same(
        run_operator("full_like", DATA, np.float32([5.5, -1, 300])),
        np.tile(np.uint8([6, 0, 255]), (2, 1)),
    )
    same(run_operator("full_like", DATA, np.uint8(7)), np.full((2, 3), 7, np.uint8))
    with pytest.raises(ShapeError, match="broadcast"):
        run_operator("full_like", DATA, np.uint8([1, 2]))


def test_shape():
    same(run_operator("_shape", DATA), np.int64([2, 3]))
    same(run_operator("_shape", DATA, dtype=T.FLOAT), np.float32([2, 3]))
    same(run_operator("_shape", np.float32(1)), np.zeros(0, np.int64))
    same(run_operator("shapes", DATA, dtype=T.UINT32), np.uint32([2, 3]))
    with pytest.raises(DataTypeError, match="UINT8"):
        run_operator("_shape", DATA, dtype=T.UINT8)
