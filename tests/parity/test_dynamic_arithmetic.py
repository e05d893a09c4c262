"""Element types and values of arithmetic in both libraries' dynamic modes."""

from __future__ import annotations

import operator

import numpy as np
import nvidia.dali.experimental.dynamic as dali
import pytest

import headrace.experimental.dynamic as ndd

TYPES = [
    *("uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64"),
    *("float32", "float64", "bool"),
]
BINARY = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
    "**": operator.pow,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
    "<": operator.lt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}
VALUES = [1, 2, 5, 3]
OTHERS = [3, 1, 2, 5]
NUMBERS = [2, -3, 1.5, True]


def array(values, dtype):
    return np.array(values).astype(dtype)


def outcome(library, function, *arrays):
    """Type and values of a result; `None` if it fails."""
    tensors = [library.tensor(a) if isinstance(a, np.ndarray) else a for a in arrays]
    try:
        with library.EvalMode.sync_cpu:
            result = function(*tensors)
            return str(result.dtype), np.asarray(result)
    except Exception:
        return None


def check(function, *arrays):
    want = outcome(dali, function, *arrays)
    got = outcome(ndd, function, *arrays)
    if want is None or got is None:
        assert got is want
        return
    assert got[0] == want[0]
    np.testing.assert_allclose(got[1], want[1], rtol=1e-6)


@pytest.mark.sweep
@pytest.mark.parametrize("left", TYPES)
@pytest.mark.parametrize("symbol", BINARY)
def test_two_tensors(symbol, left):
    for right in TYPES:
        check(BINARY[symbol], array(VALUES, left), array(OTHERS, right))


@pytest.mark.sweep
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("symbol", BINARY)
def test_a_tensor_and_a_number(symbol, dtype):
    for number in NUMBERS:
        check(BINARY[symbol], array(VALUES, dtype), number)
        check(lambda x, n=number: BINARY[symbol](n, x), array(VALUES, dtype))


@pytest.mark.sweep
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", ["neg", "pos", "abs", "invert"])
def test_one_tensor(name, dtype):
    check(getattr(operator, name), array(VALUES, dtype))


@pytest.mark.sweep
@pytest.mark.parametrize("dtype", ["uint8", "int32", "float32", "float64", "bool"])
@pytest.mark.parametrize("name", sorted(ndd.math.__all__))
def test_functions(name, dtype):
    values = [0.5, 0.25] if dtype.startswith("float") else [1, 0]
    count = {"atan2": 2, "pow": 2, "fpow": 2, "min": 2, "max": 2, "clamp": 3}.get(name, 1)
    if name in ("acosh", "rsqrt", "log", "log2", "log10", "atanh"):
        values = [1.5, 2.0] if dtype.startswith("float") else [1, 1]
    arrays = [array(values, dtype) for _ in range(count)]
    want = outcome(dali, getattr(dali.math, name), *arrays)
    got = outcome(ndd, getattr(ndd.math, name), *arrays)
    assert (want is None) == (got is None)
    if want is not None:
        assert got[0] == want[0]
        np.testing.assert_allclose(got[1], want[1], rtol=1e-5, atol=1e-7)


ARRAY = np.array([4.0, 9.0], np.float32)
UFUNCS = {
    "array_first": lambda t: ARRAY + t,
    "tensor_first": lambda t: t + ARRAY,
    "number_first": lambda t: np.float32(2) * t,
    "one_argument": lambda t: np.sqrt(t),
    "two_tensors": lambda t: np.maximum(t, t),
    "comparison": lambda t: t > ARRAY,
    "matmul": lambda t: ARRAY @ t,
    "reduction": lambda t: np.add.reduce(t),
    "sum": lambda t: np.sum(t),
    "into_an_array": lambda t: np.add(ARRAY, t, out=np.empty(2, np.float32)),
    "in_place": lambda t: operator.iadd(ARRAY.copy(), t),
}


@pytest.mark.parametrize("name", UFUNCS)
def test_numpy_takes_a_tensor_for_an_array(name):
    want, got = (UFUNCS[name](library.as_tensor(ARRAY)) for library in (dali, ndd))
    assert type(got).__name__ == type(want).__name__
    np.testing.assert_array_equal(np.asarray(got), np.asarray(want))
