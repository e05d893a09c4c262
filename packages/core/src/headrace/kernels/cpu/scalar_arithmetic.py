"""The operations of expressions on single numbers, as Python numbers.

A pipeline computes with scalars for every sample (angles, sizes, factors), where the cost of a
call is all there is: Python's own arithmetic is several times cheaper than a NumPy call. The
results are those of `headrace.kernels.cpu.arithmetic` on arrays without axes.
"""

from __future__ import annotations

import ctypes
import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from headrace.kernels.cpu.arithmetic import IntegerDivisionByZeroError, array_function

Number = Any
Function = Callable[..., Number]


def scalar_function(name: str, dtype: np.dtype) -> Function:
    """The function of operation `name` on numbers brought to `dtype`."""
    if name in _COMPARISONS:
        return _COMPARISONS[name]
    if dtype.kind == "b":
        found: Function | None = _BOOLEAN.get(name)
    elif dtype.kind in "iu":
        found = _integer_function(name, dtype)
    else:
        found = _real_function(name, dtype)
    return found or _through_array(name, dtype)


def conversion(source: np.dtype, target: np.dtype) -> Function | None:
    """Function that converts a number of type `source` to type `target`; `None` if none is
    needed.
    """
    if source == target:
        return None
    if target.kind in "iu":
        if source.kind == "b":
            return int
        narrows = source.itemsize >= target.itemsize
        return _wrapping(target) if narrows else None
    if source.kind == "f" and source.itemsize <= target.itemsize:
        return None
    if source.kind in "iu" and (source.itemsize == 8 > target.itemsize or target.itemsize == 2):
        # Through float64 it could be rounded another way.
        def convert(value: int) -> float:
            with np.errstate(all="ignore"):
                return float(np.asarray(value, source).astype(target).item())

        return convert
    return _rounding(target) or float


def _wrapping(dtype: np.dtype) -> Function:
    bits = 8 * dtype.itemsize
    mask = (1 << bits) - 1
    if dtype.kind == "u":
        return mask.__and__
    half = 1 << (bits - 1)
    return lambda value: ((value + half) & mask) - half


def _float32(value: float) -> float:
    # Unlike the `struct` module it gives infinity where float32 has no such number.
    return ctypes.c_float(value).value


def _float16(value: float) -> float:
    with np.errstate(all="ignore"):
        return float(np.float16(value))


def _rounding(dtype: np.dtype) -> Function | None:
    """Function that rounds a Python float to `dtype`; `None` for float64."""
    return {2: _float16, 4: _float32}.get(dtype.itemsize)


def _integer_function(name: str, dtype: np.dtype) -> Function | None:
    wrap = _wrapping(dtype)
    if name in _CLOSED:
        return _CLOSED[name]
    if name in ("lshift", "rshift"):
        count = 63 if dtype.itemsize == 8 else 31
        if name == "rshift":
            return lambda a, b: a >> (b & count)
        return lambda a, b: wrap(a << (b & count))
    found = _INTEGER.get(name)
    if found is None:
        return None
    if name in ("neg", "abs", "invert"):
        return lambda a: wrap(found(a))
    return lambda a, b: wrap(found(a, b))


def _real_function(name: str, dtype: np.dtype) -> Function | None:
    if name in _CLOSED:
        return _CLOSED[name]
    found = _REAL.get(name)
    rounding = _rounding(dtype)
    if found is None or rounding is None or name in ("neg", "abs", "fabs"):
        return found
    if name == "sqrt":
        return lambda a: rounding(found(a))
    return lambda a, b: rounding(found(a, b))


def _through_array(name: str, dtype: np.dtype) -> Function:
    function = array_function(name, dtype)

    def compute(*operands: Number) -> Number:
        arrays = [np.asarray(o, dtype) for o in operands]
        out = np.empty((), dtype)
        with np.errstate(all="ignore"):
            function(*arrays, out=out)
        return out.item()

    return compute


def _divide_integers(a: int, b: int) -> int:
    if b == 0:
        raise IntegerDivisionByZeroError
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def _integer_remainder(a: int, b: int) -> int:
    if b == 0:
        raise IntegerDivisionByZeroError
    remainder = abs(a) % abs(b)
    return -remainder if a < 0 else remainder


def _integer_power(base: int, exponent: int) -> int:
    return 0 if exponent < 0 else pow(base, exponent, 1 << 64)


def _divide(a: float, b: float) -> float:
    try:
        return a / b
    except ZeroDivisionError:
        if a == 0.0 or a != a:
            return math.nan
        return math.copysign(math.inf, a) * math.copysign(1.0, b)


def _remainder(a: float, b: float) -> float:
    try:
        return math.fmod(a, b)
    except ValueError:
        return math.nan


def _sqrt(a: float) -> float:
    return math.sqrt(a) if a >= 0.0 else math.nan


def _min(a: Number, b: Number) -> Number:
    return a if a < b else b


def _max(a: Number, b: Number) -> Number:
    return a if a > b else b


def _clamp(value: Number, low: Number, high: Number) -> Number:
    if value < low:
        value = low
    return high if value > high else value


_COMPARISONS: dict[str, Function] = {
    n: getattr(operator, n) for n in ("eq", "ne", "lt", "le", "gt", "ge")
}
# Operations whose results are of the operands' type without more ado.
_CLOSED: dict[str, Function] = {
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
    "min": _min,
    "max": _max,
    "clamp": _clamp,
}
_BOOLEAN: dict[str, Function] = {
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
    "mul": operator.and_,
    "invert": operator.not_,
    "lshift": lambda a, b: a,
    "rshift": operator.gt,
}
_INTEGER: dict[str, Function] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "floordiv": _divide_integers,
    "mod": _integer_remainder,
    "pow": _integer_power,
    "neg": operator.neg,
    "abs": abs,
    "invert": operator.invert,
}
_REAL: dict[str, Function] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": _divide,
    "floordiv": _divide,
    "mod": _remainder,
    "neg": operator.neg,
    "abs": abs,
    "fabs": abs,
    "sqrt": _sqrt,
}
