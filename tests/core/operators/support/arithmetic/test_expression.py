"""Expressions as data: merging, types, ranks and layouts."""

from __future__ import annotations

import pytest

from headrace.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    LayoutError,
    NumberOverflowError,
)
from headrace.operators.support.arithmetic.expression import inputs_of, merge, typed
from headrace.operators.support.schema import Spec
from headrace.types import DALIDataType as T

X, Y, Z = ("input", 0), ("input", 1), ("input", 2)
TWO = ("const", 2, T.INT32)
U8 = Spec(T.UINT8, 3, "HWC")


def test_inputs_from_left_to_right():
    assert list(inputs_of(("add", ("mul", Y, TWO), ("clamp", X, Z, Y)))) == [1, 0, 2, 1]


def test_merge_renumbers_inputs():
    outer = ("sub", X, Y)
    inner = ("mul", X, Y)
    expression, labels = merge(outer, ["a", "b"], {"a": (inner, ["c", "b"])})
    assert expression == ("sub", ("mul", ("input", 0), ("input", 1)), ("input", 1))
    assert labels == ["c", "b"]


def test_merge_goes_down_chains():
    chain = {"a": (("add", X, TWO), ["b"]), "b": (("neg", X), ["c"])}
    expression, labels = merge(("mul", X, TWO), ["a"], chain)
    assert expression == ("mul", ("add", ("neg", ("input", 0)), TWO), TWO)
    assert labels == ["c"]


def test_merge_without_replacements():
    assert merge(("add", Y, X), ["a", "b"], {}) == (("add", X, Y), ["b", "a"])
    assert merge(("add", X, Y), ["a", "a"], {}) == (("add", X, X), ["a"])


def rank(*specs, expression=("add", X, Y)):
    return typed(expression, specs).ndim


def test_ranks():
    assert rank(U8, Spec(T.UINT8, 1)) == 3
    assert rank(U8, Spec(T.UINT8, None)) is None
    assert rank(U8, expression=("add", X, TWO)) == 3
    assert rank(Spec(T.UINT8, 0), expression=("sqrt", X)) == 0


def layout(*layouts, expression=("add", X, Y)):
    return typed(expression, [Spec(T.UINT8, len(x), x) for x in layouts]).layout


def test_layouts():
    assert layout("HWC", "HWC") == "HWC"
    assert layout("HWC", "C") == "HWC"
    assert layout("C", "HWC") == "HWC"
    assert layout("HWC", "") == "HWC"
    assert layout("", "HWC") == "HWC"
    assert layout("HWC", expression=("add", TWO, X)) == "HWC"
    assert layout("", "HW", "W", expression=("clamp", X, Y, Z)) == "HW"


@pytest.mark.parametrize(("left", "right"), [("HWC", "CHW"), ("HW", "H"), ("XY", "HW")])
def test_layouts_that_do_not_fit(left, right):
    with pytest.raises(LayoutError, match=f'"{left}".*"{right}"'):
        layout(left, right)


def test_constants_keep_their_type():
    node = typed(("add", X, ("const", 0.1, T.FLOAT)), [Spec(T.FLOAT64, 0)])
    assert node.operands[1].value == pytest.approx(0.1, rel=1e-7)
    assert node.operands[1].value != 0.1  # a float32
    assert typed(("const", 0.1, T.FLOAT64), []).value == 0.1
    assert typed(("const", 3, T.BOOL), []).value is True


@pytest.mark.parametrize(("value", "dtype"), [(300, T.UINT8), (-1, T.UINT16), (2**31, T.INT32)])
def test_constants_out_of_range(value, dtype):
    with pytest.raises(NumberOverflowError, match=str(value)):
        typed(("add", X, ("const", value, dtype)), [U8])


@pytest.mark.parametrize(
    ("expression", "error", "match"),
    [
        (("frobnicate", X), ArgumentValueError, "frobnicate"),
        (("add", X), ArgumentValueError, "2 operands"),
        (("sqrt", X, X), ArgumentValueError, "1 operands"),
        (("add", X, ("input", 3)), ArgumentValueError, "input 3"),
        (3, ArgumentTypeError, "tuple"),
    ],
)
def test_malformed(expression, error, match):
    with pytest.raises(error, match=match):
        typed(expression, [U8])
