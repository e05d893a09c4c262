"""Operations of expressions on the device, against those of the CPU, for all types."""

from __future__ import annotations

import functools
import itertools

import numpy as np
import pytest

from headrace.kernels.cpu.arithmetic import (
    TRANSCENDENTAL,
    IntegerDivisionByZeroError,
    array_function,
)
from headrace.kernels.gpu.arithmetic import brought, constant, may_fault, operation
from headrace.kernels.gpu.pointwise_terms import Call, Constant, fault, source
from headrace.kernels.gpu.program import C_TYPES
from headrace.operators.support.arithmetic.operations import OPERATIONS
from tests.support.gpu.every_function import EveryFunction, Function

TYPES = list(C_TYPES)
CONSTANTS = (2, 3, -1, -2)


def defined(name: str, dtype: np.dtype) -> bool:
    found = OPERATIONS[name]
    if name == "pos":  # never computed
        return False
    if dtype.kind == "b":
        return found.booleans
    if found.kind in ("bitwise", "shift"):
        return dtype.kind != "f"
    return found.kind != "real" or dtype.kind == "f"


def result(name: str, dtype: np.dtype) -> np.dtype:
    return np.dtype(bool) if OPERATIONS[name].kind == "comparison" else dtype


def function(name: str, *types: np.dtype) -> Function:
    operands = [source(k, t) for k, t in enumerate(types)]
    faults = may_fault(name, types[0], None)
    call = operation(name, operands, result(name, types[0]), None, fault(0) if faults else None)
    assert isinstance(call, Call)
    return Function(call.function, types, call.dtype, faults)


@functools.cache
def functions_of(dtype: np.dtype) -> EveryFunction:
    names = [n for n in OPERATIONS if defined(n, dtype)]
    return EveryFunction(
        "arithmetic.cuh", [function(n, *[dtype] * OPERATIONS[n].arity) for n in names]
    )


def numbers(dtype: np.dtype, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    if dtype.kind == "b":
        return np.array([False, True])
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        edges = [0, 1, 2, 3, 7, 31, 32, 33, 63, 64, 65, info.max, info.max - 1, info.min]
        edges += [-1, -2, -7, info.min + 1] if dtype.kind == "i" else [100]
        drawn = rng.integers(info.min, info.max, 10, dtype, endpoint=True)
        return np.concatenate([np.array([e for e in edges if e <= info.max], dtype), drawn])
    edges = [0.0, -0.0, 1.0, -1.0, 0.5, 2.0, -2.5, np.inf, -np.inf, np.nan, 700.0, 6e-5, 1e-40, 3e4]
    with np.errstate(all="ignore"):
        return np.array([*edges, *(rng.standard_normal(15) * 4)], dtype)


def on_the_cpu(name: str, *operands: np.ndarray) -> np.ndarray:
    dtype = operands[0].dtype
    out = np.empty(operands[0].shape, result(name, dtype))
    with np.errstate(all="ignore"):
        array_function(name, dtype)(*operands, out=out)
    return out


def check(name: str, got: np.ndarray, want: np.ndarray) -> None:
    assert got.dtype == want.dtype
    if name not in TRANSCENDENTAL or want.dtype.kind != "f":
        np.testing.assert_array_equal(got, want)
        return
    # Half results are those of float32, rounded; ours and NumPy's may be neighbours.
    rtol = {2: 1e-3, 4: 1e-6, 8: 2e-15}[want.dtype.itemsize]
    np.testing.assert_allclose(got, want, rtol=rtol, atol=float(np.finfo(want.dtype).tiny))


EVERY = [(n, t) for n in OPERATIONS for t in TYPES if defined(n, t)]


@pytest.mark.sweep
@pytest.mark.parametrize(("name", "dtype"), EVERY, ids=lambda v: str(v))
def test_as_on_the_cpu(name, dtype):
    tables = [numbers(dtype, k) for k in range(OPERATIONS[name].arity)]
    operands = [x.ravel() for x in np.meshgrid(*tables)]
    if may_fault(name, dtype, None):
        keep = operands[1] != 0
        operands = [x[keep] for x in operands]
    types = tuple(x.dtype for x in operands)
    got, bad = functions_of(dtype)(function(name, *types), *operands)
    check(name, got, on_the_cpu(name, *operands))
    assert bad is None


@pytest.mark.sweep
@pytest.mark.parametrize("dtype", [t for t in TYPES if t.kind in "iu"], ids=str)
@pytest.mark.parametrize("name", ["floordiv", "mod"])
def test_divisions_by_zero_are_reported(name, dtype):
    a, b = np.array([1, 5, 2, 0], dtype), np.array([1, 2, 0, 0], dtype)
    got, bad = functions_of(dtype)(function(name, dtype, dtype), a, b)
    assert bad == 2
    assert got.tolist()[2:] == [0, 0]
    with pytest.raises(IntegerDivisionByZeroError):
        on_the_cpu(name, a, b)


COMPARISONS = [n for n, o in OPERATIONS.items() if o.kind == "comparison"]
LONG = (np.dtype(np.int64), np.dtype(np.uint64))


@functools.cache
def mixed_comparisons() -> EveryFunction:
    pairs = [LONG, LONG[::-1]]
    return EveryFunction("arithmetic.cuh", [function(n, *p) for n in COMPARISONS for p in pairs])


@pytest.mark.sweep
@pytest.mark.parametrize("types", [LONG, LONG[::-1]], ids=str)
@pytest.mark.parametrize("name", COMPARISONS)
def test_signed_numbers_compare_with_unsigned_ones(name, types):
    a, b = (x.ravel() for x in np.meshgrid(*(numbers(t, k) for k, t in enumerate(types))))
    got, _ = mixed_comparisons()(function(name, *types), a, b)
    np.testing.assert_array_equal(got, on_the_cpu(name, a, b))


@functools.cache
def conversions() -> EveryFunction:
    return EveryFunction("arithmetic.cuh", [conversion(*p) for p in converted()])


def converted() -> list[tuple[np.dtype, np.dtype]]:
    """The pairs of types that promotion leads to."""
    return [
        (a, b)
        for a, b in itertools.permutations(TYPES, 2)
        if b.kind != "b" and (a.kind != "f" or (b.kind == "f" and b.itemsize > a.itemsize))
    ]


def conversion(a: np.dtype, b: np.dtype) -> Function:
    call = brought(source(0, a), b)
    assert isinstance(call, Call)
    return Function(call.function, (a,), b)


@pytest.mark.parametrize(("a", "b"), converted(), ids=str)
def test_operands_are_converted_as_numpy_does(a, b):
    values = numbers(a, 0)
    with np.errstate(all="ignore"):
        want = values.astype(b)
    got, _ = conversions()(conversion(a, b), values)
    np.testing.assert_array_equal(got, want)


LITERALS = {
    "b": [True, False],
    "f": [0.0, -0.0, 0.1, -2.5, 1e-7, 65504.0, np.inf, -np.inf, np.nan],
    "i": [0, 1, -1, "min", "max"],
    "u": [0, 1, "max"],
}


def values_written(dtype: np.dtype) -> list[object]:
    info = np.iinfo(dtype) if dtype.kind in "iu" else None
    named = {"min": info.min, "max": info.max} if info else {}
    return [dtype.type(named.get(v, v)).item() for v in LITERALS[dtype.kind]]


def literal(value: object, dtype: np.dtype) -> Function:
    term = constant(value, dtype)
    assert isinstance(term, Constant)
    return Function(f"([]({C_TYPES[dtype]}) {{ return {term.text}; }})", (dtype,), dtype)


@functools.cache
def literals() -> EveryFunction:
    return EveryFunction(
        "arithmetic.cuh", [literal(v, dtype) for dtype in TYPES for v in values_written(dtype)]
    )


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_constants_are_written_exactly(dtype):
    for value in values_written(dtype):
        got, _ = literals()(literal(value, dtype), np.zeros(1, dtype))
        np.testing.assert_array_equal(got, np.array([value], dtype))
        if value == 0.0 and dtype.kind == "f":
            assert np.signbit(got[0]) == np.signbit(value)


def with_constant(name: str, value: int, dtype: np.dtype) -> Function | None:
    """The function for a constant last operand; `None` for a square."""
    operands = (source(0, dtype), constant(value, dtype))
    call = operation(name, operands, dtype, value, None)
    assert isinstance(call, Call)
    if call.operands == (operands[0], operands[0]):
        return None
    assert call.operands == operands
    return Function(call.function, (dtype, dtype), dtype)


@functools.cache
def functions_with_constants() -> EveryFunction:
    found = {
        with_constant(n, 3, t): None
        for n in ("floordiv", "mod", "pow")
        for t in TYPES
        if t.kind in "iuf"
    }
    return EveryFunction("arithmetic.cuh", [f for f in found if f is not None])


@pytest.mark.sweep
@pytest.mark.parametrize("dtype", [t for t in TYPES if t.kind in "iuf"], ids=str)
@pytest.mark.parametrize("name", ["floordiv", "mod", "pow"])
def test_a_constant_operand_changes_nothing(name, dtype):
    # What is generated for a constant is other text, with the same results.
    a = numbers(dtype, 0)
    for value in (c for c in CONSTANTS if c > 0 or dtype.kind != "u"):
        b = np.full_like(a, value)
        known = with_constant(name, value, dtype)
        if known is None:
            got, _ = functions_of(dtype)(function("mul", dtype, dtype), a, a)
        else:
            got, _ = functions_with_constants()(known, a, b)
        check(name, got, on_the_cpu(name, a, b))
