"""C's arithmetic, checked against Python's integers; numbers against arrays."""

from __future__ import annotations

import math

import numpy as np
import pytest

from headrace.kernels.cpu.arithmetic import IntegerDivisionByZeroError, array_function
from headrace.kernels.cpu.scalar_arithmetic import conversion, scalar_function
from headrace.operators.support.arithmetic.operations import OPERATIONS

INTEGERS = [np.dtype(t) for t in ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8")]
REALS = [np.dtype(t) for t in ("f2", "f4", "f8")]
BOOLEAN = np.dtype(bool)


def defined(name, dtype):
    operation = OPERATIONS[name]
    if name == "pos":  # never computed
        return False
    if dtype.kind == "b":
        return operation.booleans
    if operation.kind in ("bitwise", "shift"):
        return dtype.kind != "f"
    return operation.kind != "real" or dtype.kind == "f"


def wrapped(value, dtype):
    bits = 8 * dtype.itemsize
    value &= (1 << bits) - 1
    return value - (1 << bits) if dtype.kind == "i" and value >> (bits - 1) else value


def interesting(dtype, seed=0):
    rng = np.random.default_rng(seed)
    if dtype.kind == "b":
        return np.array([False, True, True, False])
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        edges = [0, 1, 2, 3, 7, limits.max, limits.max - 1, limits.min, limits.min + 1]
        edges += [-1, -2, -7] if dtype.kind == "i" else [100]
        return np.array(
            [*edges, *rng.integers(limits.min, limits.max, 20, dtype=dtype).tolist()], dtype
        )
    values = [0.0, -0.0, 1.0, -1.0, 0.5, 2.0, 3.7, -3.7, np.inf, -np.inf, np.nan, 700.0, 1e-7]
    return np.array([*values, *(rng.standard_normal(20) * 4)], dtype)


def apply(name, dtype, *operands, constants=(), natural=False):
    out_dtype = np.dtype(bool) if OPERATIONS[name].kind == "comparison" else dtype
    out = np.empty(np.broadcast_shapes(*(np.shape(o) for o in operands)), out_dtype)
    with np.errstate(all="ignore"):
        array_function(name, dtype, constants, natural=natural)(*operands, out=out)
    return out


def pairs(dtype, seed=0):
    a, b = np.meshgrid(interesting(dtype, seed), interesting(dtype, seed + 1))
    return a.ravel(), b.ravel()


def divided(a, b):
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


PYTHON = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "floordiv": divided,
    "mod": lambda a, b: a - divided(a, b) * b,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "min": min,
    "max": max,
}


@pytest.mark.sweep
@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
@pytest.mark.parametrize("name", PYTHON)
def test_integers(name, dtype):
    a, b = pairs(dtype)
    if name in ("floordiv", "mod"):
        keep = (b != 0) & ~(
            (a == np.iinfo(dtype).min) & (b == dtype.type(-1 if dtype.kind == "i" else 1))
        )
        a, b = a[keep], b[keep]
    got = apply(name, dtype, a, b)
    want = [wrapped(PYTHON[name](x, y), dtype) for x, y in zip(a.tolist(), b.tolist(), strict=True)]
    assert got.tolist() == want


@pytest.mark.sweep
@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
@pytest.mark.parametrize("name", ["floordiv", "mod", "pow", "lshift", "rshift"])
def test_constant_operand_changes_nothing(name, dtype):
    a = interesting(dtype)
    natural = a[a >= 0]
    for constant in (1, 2, 3, 7, 100, *((-1, -2, -7) if dtype.kind == "i" else ())):
        number, constants = dtype.type(constant), (None, constant)
        slow = apply(name, dtype, a, np.full_like(a, number))
        fast = apply(name, dtype, a, number, constants=constants)
        np.testing.assert_array_equal(fast, slow, f"{constant}")
        fast = apply(name, dtype, natural, number, constants=constants, natural=True)
        np.testing.assert_array_equal(fast, slow[a >= 0], f"{constant}")


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_integer_power(dtype):
    a, b = pairs(dtype)
    b = (
        (b % dtype.type(70)).astype(dtype)
        if dtype.kind == "u"
        else np.clip(b, -3, 70).astype(dtype)
    )
    want = [
        0 if y < 0 else wrapped(x**y, dtype) for x, y in zip(a.tolist(), b.tolist(), strict=True)
    ]
    assert apply("pow", dtype, a, b).tolist() == want


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_shift_counts_wrap_around(dtype):
    width = 64 if dtype.itemsize == 8 else 32
    a = interesting(dtype)
    for count in (0, 1, 5, 31, 32, 33, 63, 64, 100):
        b = np.full_like(a, count)
        for name, python in (("lshift", int.__lshift__), ("rshift", int.__rshift__)):
            want = [wrapped(python(x, count % width), dtype) for x in a.tolist()]
            assert apply(name, dtype, a, b).tolist() == want


@pytest.mark.sweep
@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
@pytest.mark.parametrize("name", ["floordiv", "mod"])
def test_division_by_zero(name, dtype):
    with pytest.raises(IntegerDivisionByZeroError):
        apply(name, dtype, interesting(dtype), dtype.type(0), constants=(None, 0))
    with pytest.raises(IntegerDivisionByZeroError):
        apply(name, dtype, interesting(dtype), interesting(dtype))
    with pytest.raises(IntegerDivisionByZeroError):
        scalar_function(name, dtype)(3, 0)


@pytest.mark.parametrize("dtype", [np.dtype("f4"), np.dtype("f8")], ids=str)
def test_real_remainder_is_that_of_c(dtype):
    rng = np.random.default_rng(3)
    a = np.concatenate(
        [
            interesting(dtype),
            (rng.standard_normal(500) * 10.0 ** rng.integers(-6, 12, 500)).astype(dtype),
        ]
    )
    b = rng.permutation(
        np.concatenate([interesting(dtype), (rng.standard_normal(500) * 3).astype(dtype)])
    )

    def fmod(x, y):
        return math.fmod(x, y) if math.isfinite(x) and y != 0 and not math.isnan(y) else math.nan

    want = np.array([fmod(x, y) for x, y in zip(a.tolist(), b.tolist(), strict=True)], dtype)
    np.testing.assert_array_equal(apply("mod", dtype, a, b), want)
    near = b[np.isfinite(b) & (np.abs(b) > 0.1)]  # all quotients small: the fast way
    some = a[: len(near)][np.isfinite(a[: len(near)]) & (np.abs(a[: len(near)]) < 1e6)]
    near = near[: len(some)]
    want = np.array([fmod(x, y) for x, y in zip(some.tolist(), near.tolist(), strict=True)], dtype)
    got = apply("mod", dtype, some, near)
    np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(np.signbit(got), np.signbit(some))


NAN = np.nan


@pytest.mark.sweep
@pytest.mark.parametrize(
    ("name", "operands", "want"),
    [
        ("min", ([1, NAN, NAN, 3], [NAN, 1, NAN, 2]), [NAN, 1, NAN, 2]),
        ("max", ([1, NAN, NAN, 3], [NAN, 1, NAN, 2]), [NAN, 1, NAN, 3]),
        ("clamp", ([NAN, 1, 1, 0, 5], [0, NAN, 0, 2, 0], [2, 2, NAN, 3, 2]), [NAN, 1, 1, 2, 2]),
        ("clamp", ([0, 3, 9], [5, 5, 5], [1, 1, 1]), [1, 1, 1]),
        ("floordiv", ([7.0, -7.5, 7.0, 0.0], [2.0, 2.0, 0.0, 0.0]), [3.5, -3.75, np.inf, NAN]),
        ("rsqrt", ([0.0, 4.0, -1.0, np.inf],), [np.inf, 0.5, NAN, 0.0]),
    ],
)
@pytest.mark.parametrize("dtype", [np.dtype("f4"), np.dtype("f8")], ids=str)
def test_numbers_that_are_none(name, operands, want, dtype):
    arrays = [np.array(o, dtype) for o in operands]
    np.testing.assert_array_equal(apply(name, dtype, *arrays), np.array(want, dtype))


@pytest.mark.parametrize("name", OPERATIONS)
def test_numbers_give_what_arrays_give(name):
    for dtype in (BOOLEAN, *INTEGERS, *REALS):
        if defined(name, dtype):
            check_numbers(name, dtype)


def check_numbers(name, dtype):
    arity = OPERATIONS[name].arity
    operands = [interesting(dtype, seed) for seed in range(arity)]
    rng = np.random.default_rng(5)
    operands = [rng.permutation(o) for o in operands]
    if name in ("floordiv", "mod") and dtype.kind != "f":
        operands[1] = np.where(operands[1] == 0, 3, operands[1]).astype(dtype)
        if dtype.kind == "i":  # the lowest number divided by -1 is not defined
            operands[1] = np.where(operands[1] == -1, 3, operands[1]).astype(dtype)
    array = apply(name, dtype, *operands)
    function = scalar_function(name, dtype)
    numbers = [function(*(o[i].item() for o in operands)) for i in range(len(array))]
    assert all(isinstance(n, (bool, int, float)) for n in numbers)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(np.array(numbers, array.dtype), array)


def converted(source, target):
    """Whether an operation brings numbers of one type to the other."""
    if source.kind == "f":
        return target.kind == "f" and source.itemsize <= target.itemsize
    return not (source.kind == "i" and target.kind == "u")


@pytest.mark.parametrize(
    ("source", "target"),
    [(s, t) for s in (BOOLEAN, *INTEGERS, *REALS) for t in (*INTEGERS, *REALS) if converted(s, t)],
    ids=str,
)
def test_conversion_of_numbers(source, target):
    values = interesting(source)
    convert = conversion(source, target) or (lambda value: value)
    with np.errstate(all="ignore"):
        want = values.astype(target)
        got = np.array([convert(v) for v in values.tolist()], target)
    np.testing.assert_array_equal(got, want)
