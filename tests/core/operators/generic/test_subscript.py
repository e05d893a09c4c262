"""Indexing by constants and by numbers a sample."""

from __future__ import annotations

import numpy as np
import pytest

from headrace.errors import ArgumentValueError, DataTypeError, OutOfRangeError, ShapeError
from headrace.operators.support.registry import find
from headrace.operators.support.schema import Spec
from headrace.types import DALIDataType as T
from tests.support.run_operator import run_operator

DATA = np.arange(24, dtype=np.int32).reshape(2, 3, 4)


def taken(**args):
    return run_operator("_tensor_subscript", DATA, layout="HWC", **args)


def number(value, dtype=np.int32):
    return np.asarray(value, dtype)


CASES = [
    (np.s_[1], {"at_0": 1}),
    (np.s_[-1], {"at_0": -1}),
    (np.s_[1, 2], {"at_0": 1, "at_1": 2}),
    (np.s_[1, 2, 3], {"at_0": 1, "at_1": 2, "at_2": 3}),
    (np.s_[0:1], {"lo_0": 0, "hi_0": 1}),
    (np.s_[:, 1:], {"lo_1": 1}),
    (np.s_[::-1], {"step_0": -1}),
    (np.s_[:, 2:0:-1], {"lo_1": 2, "hi_1": 0, "step_1": -1}),
    (np.s_[:, :, ::2], {"step_2": 2}),
    (np.s_[:, -2:-1], {"lo_1": -2, "hi_1": -1}),
    (np.s_[:, 5:9], {"lo_1": 5, "hi_1": 9}),
    (np.s_[9:-9:-1], {"lo_0": 9, "hi_0": -9, "step_0": -1}),
    (np.s_[:, 2:1], {"lo_1": 2, "hi_1": 1}),
    (np.s_[1, :, 2], {"at_0": 1, "at_2": 2}),
    (np.s_[:, :, :: 2**31 - 1], {"step_2": 2**31 - 1}),
]


@pytest.mark.parametrize(("index", "args"), CASES, ids=str)
def test_what_python_takes(index, args):
    want = DATA[index]
    for given in (args, {k: number(v) for k, v in args.items()}):
        got = taken(**given)
        assert isinstance(got, np.ndarray)
        np.testing.assert_array_equal(got, want)
        assert got.size == 0 or np.shares_memory(got, DATA)


def test_constants_and_tensors_together():
    np.testing.assert_array_equal(taken(at_0=1, lo_1=number(1), hi_1=3), DATA[1, 1:3])
    for dtype in (np.uint8, np.int64, np.uint64):
        np.testing.assert_array_equal(taken(at_0=number(1, dtype)), DATA[1])


def layout(**args):
    op = find("_tensor_subscript").cls({**dict.fromkeys(find("_tensor_subscript").args), **args})
    return op.infer(Spec(T.UINT8, 3, "HWC"))


def test_layouts():
    assert layout(at_0=1) == Spec(T.UINT8, 2, "WC")
    assert layout(at_0=1, at_2=0) == Spec(T.UINT8, 1, "W")
    assert layout(lo_1=1) == Spec(T.UINT8, 3, "HWC")
    assert layout(at_0=1, at_1=1, at_2=1) == Spec(T.UINT8, 0, "")


@pytest.mark.parametrize("index", [2, -3, 100])
def test_index_out_of_range(index):
    for given in (index, number(index)):
        with pytest.raises(
            OutOfRangeError, match=rf"{index} is out of range for axis 0 of length 2"
        ):
            taken(at_0=given)


def test_errors():
    for step in (0, number(0)):
        with pytest.raises(ArgumentValueError, match="Step cannot be zero"):
            taken(step_1=step)
    with pytest.raises(OutOfRangeError, match=r"Too many indices \(4"):
        taken(at_0=0, num_subscripts=4)
    with pytest.raises(OutOfRangeError, match=r"Too many indices \(5"):
        taken(lo_4=1)
    with pytest.raises(OutOfRangeError, match="index to a scalar"):
        run_operator("_tensor_subscript", np.int32(3), at_0=0)
    with pytest.raises(ShapeError, match="scalars"):
        taken(at_0=number([1]))
    with pytest.raises(DataTypeError, match="integer"):
        taken(at_0=number(1, np.float32))
    with pytest.raises(ArgumentValueError, match="both an index"):
        taken(at_0=0, lo_0=1)


def test_dimension_check():
    assert run_operator("_subscript_dim_check", DATA, num_subscripts=3) is DATA
    with pytest.raises(OutOfRangeError, match=r"4\): the data has not enough dimensions \(3"):
        run_operator("_subscript_dim_check", DATA, num_subscripts=4)
