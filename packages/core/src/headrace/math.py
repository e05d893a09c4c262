"""Mathematical functions of pipeline tensors, element by element.

Operands are `DataNode` objects, numbers, arrays or `types.Constant`; at least one must be a
`DataNode`. Samples of different shapes broadcast as in NumPy. Functions of real numbers give
float32 for integers, and the operand's own type otherwise; none takes booleans only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.graph.expressions import apply as _apply
from headrace.operators.support.arithmetic.operations import OPERATIONS
from headrace.tracebacks import public as _public

__path__: list[str] = []
"""Makes `from headrace.math import` of a misspelt name tell one that is alike."""

if TYPE_CHECKING:
    from headrace.graph.data_node import DataNode, Operand

__all__ = [
    "abs",
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "cbrt",
    "ceil",
    "clamp",
    "cos",
    "cosh",
    "exp",
    "fabs",
    "floor",
    "fpow",
    "log",
    "log2",
    "log10",
    "max",
    "min",
    "pow",
    "rsqrt",
    "sin",
    "sinh",
    "sqrt",
    "tan",
    "tanh",
]


def __dir__() -> list[str]:
    return [*__all__]


def abs(input: Operand) -> DataNode:
    """Absolute value, of the type of `input`.

    The lowest number of a signed integer type has none and stays as it is.
    """
    return _apply(OPERATIONS["abs"], input)


def fabs(input: Operand) -> DataNode:
    """Absolute value as a real number."""
    return _apply(OPERATIONS["fabs"], input)


def sqrt(input: Operand) -> DataNode:
    """Square root; not a number below zero."""
    return _apply(OPERATIONS["sqrt"], input)


def rsqrt(input: Operand) -> DataNode:
    """Reciprocal of the square root: infinite at zero, not a number below."""
    return _apply(OPERATIONS["rsqrt"], input)


def cbrt(input: Operand) -> DataNode:
    """Cube root."""
    return _apply(OPERATIONS["cbrt"], input)


def exp(input: Operand) -> DataNode:
    """Exponential function."""
    return _apply(OPERATIONS["exp"], input)


def log(input: Operand) -> DataNode:
    """Natural logarithm: minus infinity at zero, not a number below."""
    return _apply(OPERATIONS["log"], input)


def log2(input: Operand) -> DataNode:
    """Logarithm to the base 2: minus infinity at zero, not a number below."""
    return _apply(OPERATIONS["log2"], input)


def log10(input: Operand) -> DataNode:
    """Logarithm to the base 10: minus infinity at zero, not a number below."""
    return _apply(OPERATIONS["log10"], input)


def pow(base: Operand, exponent: Operand) -> DataNode:
    """Power, of the type both operands promote to.

    Integers to the power of a negative integer are zero; `fpow` computes with real numbers.
    """
    return _apply(OPERATIONS["pow"], base, exponent)


def fpow(base: Operand, exponent: Operand) -> DataNode:
    """Power, computed with real numbers."""
    return _apply(OPERATIONS["fpow"], base, exponent)


def min(left: Operand, right: Operand) -> DataNode:
    """The smaller of two numbers, of the type both promote to."""
    return _apply(OPERATIONS["min"], left, right)


def max(left: Operand, right: Operand) -> DataNode:
    """The greater of two numbers, of the type both promote to."""
    return _apply(OPERATIONS["max"], left, right)


def clamp(value: Operand, lo: Operand, hi: Operand) -> DataNode:
    """`value`, but not below `lo` nor above `hi`, of the type all three promote to.

    Where `lo` is above `hi` the result is `hi`.
    """
    return _apply(OPERATIONS["clamp"], value, lo, hi)


def floor(input: Operand) -> DataNode:
    """Largest integer that is not greater, as a real number."""
    return _apply(OPERATIONS["floor"], input)


def ceil(input: Operand) -> DataNode:
    """Smallest integer that is not less, as a real number."""
    return _apply(OPERATIONS["ceil"], input)


def sin(input: Operand) -> DataNode:
    """Sine of an angle in radians."""
    return _apply(OPERATIONS["sin"], input)


def cos(input: Operand) -> DataNode:
    """Cosine of an angle in radians."""
    return _apply(OPERATIONS["cos"], input)


def tan(input: Operand) -> DataNode:
    """Tangent of an angle in radians."""
    return _apply(OPERATIONS["tan"], input)


def asin(input: Operand) -> DataNode:
    """Arc sine in radians; not a number outside of [-1, 1]."""
    return _apply(OPERATIONS["asin"], input)


def acos(input: Operand) -> DataNode:
    """Arc cosine in radians; not a number outside of [-1, 1]."""
    return _apply(OPERATIONS["acos"], input)


def atan(input: Operand) -> DataNode:
    """Arc tangent in radians."""
    return _apply(OPERATIONS["atan"], input)


def atan2(x: Operand, y: Operand) -> DataNode:
    """Angle in radians whose tangent is ``x / y``, in the quadrant that their signs tell.

    As in DALI, the first operand is the numerator: the sine's side of the triangle.
    """
    return _apply(OPERATIONS["atan2"], x, y)


def sinh(input: Operand) -> DataNode:
    """Hyperbolic sine."""
    return _apply(OPERATIONS["sinh"], input)


def cosh(input: Operand) -> DataNode:
    """Hyperbolic cosine."""
    return _apply(OPERATIONS["cosh"], input)


def tanh(input: Operand) -> DataNode:
    """Hyperbolic tangent."""
    return _apply(OPERATIONS["tanh"], input)


def asinh(input: Operand) -> DataNode:
    """Inverse hyperbolic sine."""
    return _apply(OPERATIONS["asinh"], input)


def acosh(input: Operand) -> DataNode:
    """Inverse hyperbolic cosine; not a number below 1."""
    return _apply(OPERATIONS["acosh"], input)


def atanh(input: Operand) -> DataNode:
    """Inverse hyperbolic tangent; not a number outside of [-1, 1]."""
    return _apply(OPERATIONS["atanh"], input)


for _name in __all__:
    globals()[_name] = _public(globals()[_name])
