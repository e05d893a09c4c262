"""Result types, against the table measured with DALI."""

from __future__ import annotations

import pytest

from headrace.errors import DataTypeError
from headrace.operators.support.arithmetic.operations import OPERATIONS
from headrace.operators.support.arithmetic.promotion import (
    NUMERIC,
    promote,
    promote_all,
    result_type,
)
from headrace.types import DALIDataType as T

NAMES = ["b", "u8", "u16", "u32", "u64", "i8", "i16", "i32", "i64", "f16", "f32", "f64"]
BY_NAME = dict(zip(NAMES, NUMERIC, strict=True))
# Rows and columns in the order of NAMES.
PRODUCTS = """
b   u8  u16 u32 u64 i8  i16 i32 i64 f16 f32 f64
u8  u8  u16 u32 u64 i16 i16 i32 i64 f16 f32 f64
u16 u16 u16 u32 u64 i32 i32 i32 i64 f16 f32 f64
u32 u32 u32 u32 u64 i64 i64 i64 i64 f16 f32 f64
u64 u64 u64 u64 u64 i64 i64 i64 i64 f16 f32 f64
i8  i16 i32 i64 i64 i8  i16 i32 i64 f16 f32 f64
i16 i16 i32 i64 i64 i16 i16 i32 i64 f16 f32 f64
i32 i32 i32 i64 i64 i32 i32 i32 i64 f16 f32 f64
i64 i64 i64 i64 i64 i64 i64 i64 i64 f16 f32 f64
f16 f16 f16 f16 f16 f16 f16 f16 f16 f16 f32 f64
f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f64
f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64
"""
TABLE = [row.split() for row in PRODUCTS.split("\n") if row]


@pytest.mark.parametrize("left", NAMES)
def test_products(left):
    row = TABLE[NAMES.index(left)]
    for right, want in zip(NAMES, row, strict=True):
        assert promote(BY_NAME[left], BY_NAME[right]) is BY_NAME[want]
        assert result_type("mul", [BY_NAME[left], BY_NAME[right]]) is BY_NAME[want]


def test_three_operands_from_left_to_right():
    assert promote_all([T.UINT8, T.INT8, T.UINT16]) is T.INT32
    assert result_type("clamp", [T.UINT8, T.INT32, T.FLOAT]) is T.FLOAT


@pytest.mark.parametrize("name", ["div", "fpow", "atan2"])
def test_real_operations_of_integers(name):
    assert result_type(name, [T.INT64, T.UINT8]) is T.FLOAT
    assert result_type(name, [T.INT64, T.FLOAT64]) is T.FLOAT64
    assert result_type(name, [T.BOOL, T.FLOAT16]) is T.FLOAT16


def test_unary():
    assert result_type("sqrt", [T.INT8]) is T.FLOAT
    assert result_type("sqrt", [T.FLOAT64]) is T.FLOAT64
    assert result_type("abs", [T.INT8]) is T.INT8
    assert result_type("neg", [T.UINT8]) is T.UINT8
    assert result_type("invert", [T.BOOL]) is T.BOOL
    assert result_type("pos", [T.BOOL]) is T.BOOL


@pytest.mark.parametrize("name", [n for n, o in OPERATIONS.items() if o.kind == "comparison"])
def test_comparisons_give_booleans(name):
    for left in NUMERIC:
        assert result_type(name, [left, T.FLOAT]) is T.BOOL


@pytest.mark.parametrize("name", OPERATIONS)
def test_booleans_only(name):
    operation = OPERATIONS[name]
    types = [T.BOOL] * operation.arity
    if operation.booleans:
        assert result_type(name, types) is T.BOOL
    else:
        with pytest.raises(DataTypeError, match="boolean"):
            result_type(name, types)


@pytest.mark.parametrize(
    "name", [n for n, o in OPERATIONS.items() if o.kind in ("bitwise", "shift")]
)
def test_bits_of_real_numbers(name):
    types = [T.INT32, T.FLOAT][-OPERATIONS[name].arity :]
    with pytest.raises(DataTypeError, match="FLOAT"):
        result_type(name, types)


def test_enumerations_are_no_numbers():
    with pytest.raises(DataTypeError, match="INTERP_TYPE"):
        result_type("add", [T.INTERP_TYPE, T.INT32])
