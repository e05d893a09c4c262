"""The operations of expressions on arrays, with C's rules where NumPy has others.

Every function takes its operands, brought to one type, and the keyword `out`, which may be one of
them.
Integers wrap around. The caller silences NumPy's warnings about that and about real numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Function = Callable[..., Any]

_EXACT_QUOTIENT = 2.0**29


TRANSCENDENTAL = frozenset(
    {
        "pow",
        "fpow",
        "exp",
        "log",
        "log2",
        "log10",
        "sin",
        "cos",
        "tan",
        "asin",
        "acos",
        "atan",
        "atan2",
        "sinh",
        "cosh",
        "tanh",
        "asinh",
        "acosh",
        "atanh",
        "cbrt",
    }
)
"""Their last bit NumPy computes differently where memory is read backwards."""


def _allocates(function: Function) -> Function:
    """Mark a function that makes temporary arrays as large as its operands."""
    function.allocates = True  # type: ignore[attr-defined]
    return function


def allocates(function: Function) -> bool:
    """True if `function` is to be called on few elements at a time.

    It makes temporary arrays; the C library hands large ones back to the operating system and
    pays for every page of them again.
    """
    return getattr(function, "allocates", False)


class IntegerDivisionByZeroError(ZeroDivisionError):
    """An integer was divided by zero."""


def array_function(
    name: str, dtype: np.dtype, constants: Sequence[Any] = (), *, natural: bool = False
) -> Function:
    """The function of operation `name` on operands of `dtype`."""
    last = constants[-1] if constants else None
    if dtype.kind == "b":
        special = _BOOLEAN.get(name)
    elif dtype.kind in "iu":
        special = _integer_function(name, dtype, last, natural)
    else:
        special = _real_function(name, dtype, constants)
    return special or _PLAIN[name]


def _integer_function(name: str, dtype: np.dtype, last: Any, natural: bool) -> Function | None:
    if name in ("floordiv", "mod"):
        if last is None or last in (0, -1):
            if name == "mod":
                return _remainder
            return _divide_unsigned if dtype.kind == "u" else _divide_signed
        # NumPy divides by a scalar without division instructions, but takes no such remainder.
        rounds_down = dtype.kind == "u" or (natural and last > 0)
        divide = np.floor_divide if rounds_down else _divide_signed_by_constant
        return divide if name == "floordiv" else _remainder_by(divide)
    if name == "pow":
        if last is None or last < 0:
            return _integer_power
        return _square if last == 2 else None
    if name in ("lshift", "rshift"):
        shift = np.left_shift if name == "lshift" else np.right_shift
        bits = dtype.itemsize * 8
        if last is not None and 0 <= last < min(bits, 32):
            return shift
        return _masked_shift(shift, dtype.type(63 if bits == 64 else 31))
    return None


def _real_function(name: str, dtype: np.dtype, constants: Sequence[Any]) -> Function | None:
    def numbers(first: int) -> bool:
        return all(c is not None and not np.isnan(c) for c in constants[first:])

    if name in ("pow", "fpow") and len(constants) == 2 and constants[1] == 2:
        return _square
    if name in ("min", "max") and len(constants) == 2 and numbers(1):
        return np.fmin if name == "min" else np.fmax
    if name == "clamp" and len(constants) == 3 and numbers(1):
        return _clamp
    if name == "mod" and dtype == np.float32:
        return _float32_remainder
    return _REAL.get(name)


def _divide_unsigned(a: np.ndarray, b: Any, out: np.ndarray) -> None:
    _check_divisor(b)
    np.floor_divide(a, b, out=out)


@_allocates
def _divide_signed_by_constant(a: np.ndarray, b: Any, out: np.ndarray) -> None:
    quotient = np.floor_divide(a, b)
    # Where the quotient is below zero and inexact, cutting off gives one more than rounding down.
    inexact = np.multiply(quotient, b) != a
    np.logical_and(inexact, quotient < 0, out=inexact)
    np.add(quotient, inexact.view(np.int8), out=out, casting="unsafe")


@_allocates
def _divide_signed(a: Any, b: Any, out: np.ndarray) -> None:
    _check_divisor(b)
    if out.dtype.itemsize <= 4:
        # The float64 quotient of two 32-bit integers is never rounded across an integer, and the
        # conversion back cuts off.
        quotient = np.empty(out.shape, np.float64)
        np.copyto(quotient, a)
        np.divide(quotient, np.asarray(b).astype(np.float64), out=quotient)
        np.copyto(out, quotient, casting="unsafe")
        return
    quotient = np.floor_divide(a, b)
    inexact = np.multiply(quotient, b) != a
    negative = np.less(a, 0) != np.less(b, 0)
    np.add(quotient, np.logical_and(inexact, negative), out=out, casting="unsafe")


def _remainder(a: Any, b: Any, out: np.ndarray) -> None:
    _check_divisor(b)
    np.fmod(a, b, out=out)


def _remainder_by(divide: Function) -> Function:
    @_allocates
    def remainder(a: np.ndarray, b: Any, out: np.ndarray) -> None:
        quotient = np.empty_like(out)
        divide(a, b, out=quotient)
        np.multiply(quotient, b, out=quotient)
        np.subtract(a, quotient, out=out)

    return remainder


def _check_divisor(b: Any) -> None:
    if not np.all(b):
        raise IntegerDivisionByZeroError


@_allocates
def _integer_power(base: Any, exponent: Any, out: np.ndarray) -> None:
    negative = np.less(exponent, 0)
    if not negative.any():
        np.power(base, exponent, out=out)
        return
    np.power(base, np.maximum(exponent, 0, dtype=out.dtype), out=out)
    np.copyto(out, 0, where=negative)


def _square(base: np.ndarray, exponent: Any, out: np.ndarray) -> None:
    np.multiply(base, base, out=out)


def _masked_shift(shift: Function, mask: Any) -> Function:
    @_allocates
    def masked(a: Any, b: Any, out: np.ndarray) -> None:
        # NumPy shifts everything out where the count exceeds the width, as 32-bit registers do
        # for narrower types after the result is cut off.
        shift(a, np.bitwise_and(b, mask), out=out)

    return masked


def _shift_booleans_right(a: Any, b: Any, out: np.ndarray) -> None:
    np.greater(a, b, out=out)


def _keep_left(a: Any, b: Any, out: np.ndarray) -> None:
    np.copyto(out, a)


@_allocates
def _real_min(a: Any, b: Any, out: np.ndarray) -> None:
    """``a if a < b else b``: not a number only where `b` is."""
    np.minimum(np.fmin(a, b), b, out=out)


@_allocates
def _real_max(a: Any, b: Any, out: np.ndarray) -> None:
    """``a if a > b else b``: not a number only where `b` is."""
    np.maximum(np.fmax(a, b), b, out=out)


@_allocates
def _real_clamp(value: Any, low: Any, high: Any, out: np.ndarray) -> None:
    """Not a number only where `value` is: a bound that is none does not bound."""
    raised = np.maximum(np.fmax(value, low), value)
    np.minimum(np.fmin(raised, high), raised, out=out)


def _clamp(value: Any, low: Any, high: Any, out: np.ndarray) -> None:
    np.clip(value, low, high, out=out)


@_allocates
def _float32_remainder(a: Any, b: Any, out: np.ndarray) -> None:
    """C's ``fmodf``, without its loop of shifts and subtractions.

    With a quotient below 2**29, quotient and product are exact in float64, and so is what is left.
    """
    wide = np.empty(out.shape, np.float64)
    np.copyto(wide, a)
    divisor = np.asarray(b).astype(np.float64)
    quotient = np.divide(wide, divisor)
    np.trunc(quotient, out=quotient)
    exact = np.max(np.abs(quotient), initial=0.0) < _EXACT_QUOTIENT
    if not exact or not np.all(np.isfinite(divisor)):
        np.fmod(a, b, out=out)
        return
    np.multiply(quotient, divisor, out=quotient)
    np.subtract(wide, quotient, out=quotient)
    np.copysign(quotient, wide, out=quotient)
    np.copyto(out, quotient, casting="unsafe")


def _rsqrt(a: Any, out: np.ndarray) -> None:
    np.sqrt(a, out=out)
    np.divide(out.dtype.type(1), out, out=out)


_BOOLEAN: dict[str, Function] = {
    "mul": np.logical_and,
    "invert": np.logical_not,
    "lshift": _keep_left,
    "rshift": _shift_booleans_right,
}
_REAL: dict[str, Function] = {
    "floordiv": np.divide,
    "mod": np.fmod,
    "min": _real_min,
    "max": _real_max,
    "clamp": _real_clamp,
}
_PLAIN: dict[str, Function] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "pow": np.power,
    "neg": np.negative,
    "abs": np.absolute,
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "invert": np.invert,
    "sqrt": np.sqrt,
    "rsqrt": _rsqrt,
    "cbrt": np.cbrt,
    "exp": np.exp,
    "log": np.log,
    "log2": np.log2,
    "log10": np.log10,
    "fabs": np.fabs,
    "floor": np.floor,
    "ceil": np.ceil,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "atan2": np.arctan2,
    "fpow": np.power,
    "min": np.minimum,
    "max": np.maximum,
    "clamp": _clamp,
}
