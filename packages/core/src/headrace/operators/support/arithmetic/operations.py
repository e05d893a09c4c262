"""The table of everything an expression can do: the source of operators and of `headrace.math`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Kind = Literal["arithmetic", "real", "bitwise", "shift", "comparison"]


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation of an expression.

    ``arithmetic`` operations give the promoted type of their operands; ``real`` ones too, but
    float32 where that would be an integer; ``bitwise`` and ``shift`` ones take integers and
    booleans; ``comparison`` ones give booleans.
    """

    name: str
    kind: Kind
    parameters: tuple[str, ...]
    """Names of the operands in `headrace.math`."""
    doc: str
    symbol: str | None = None
    """Symbol as written before or between operands: ``"+"``."""
    dunder: str | None = None
    """Method of Python's data model: ``"__add__"``."""
    reflected: str | None = None
    """The same with swapped operands: ``"__radd__"``."""
    math_name: str | None = None
    """Its name in `headrace.math`."""
    booleans: bool = False
    """True if operands may all be boolean."""

    @property
    def arity(self) -> int:
        """Number of operands."""
        return len(self.parameters)

    @property
    def shown(self) -> str:
        """Name in messages."""
        return self.symbol or self.math_name or self.name


def _binary(
    name: str, symbol: str, kind: Kind, doc: str, dunder: str | None = None, **more: bool
) -> Operation:
    stem = dunder or name
    return Operation(
        name,
        kind,
        ("left", "right"),
        doc,
        symbol=symbol,
        dunder=f"__{stem}__",
        # Python swaps comparisons by itself: `1 < x` calls `x > 1`.
        reflected=None if kind == "comparison" else f"__r{stem}__",
        booleans=kind in ("bitwise", "shift", "comparison") or more.get("booleans", False),
    )


def _math(name: str, doc: str, kind: Kind = "real") -> Operation:
    return Operation(name, kind, ("input",), doc, math_name=name)


def _table() -> Iterable[Operation]:
    yield _binary("add", "+", "arithmetic", "Sum.")
    yield _binary("sub", "-", "arithmetic", "Difference.")
    yield _binary(
        "mul", "*", "arithmetic", "Product; of two booleans their conjunction.", booleans=True
    )
    yield _binary("div", "/", "real", "Quotient, a real number also of two integers.", "truediv")
    yield _binary(
        "floordiv",
        "//",
        "arithmetic",
        "Quotient: of integers cut off towards zero, of real numbers not rounded at all.",
    )
    yield _binary("mod", "%", "arithmetic", "Remainder of the division, with the sign of `left`.")
    yield Operation(
        "pow",
        "arithmetic",
        ("base", "exponent"),
        "`base` to the power of `exponent`. Integers to a negative power are zero.",
        symbol="**",
        dunder="__pow__",
        reflected="__rpow__",
        math_name="pow",
    )
    yield Operation("neg", "arithmetic", ("input",), "Negative.", symbol="-", dunder="__neg__")
    yield Operation(
        "pos", "arithmetic", ("input",), "The same.", symbol="+", dunder="__pos__", booleans=True
    )
    yield Operation(
        "abs",
        "arithmetic",
        ("input",),
        "Absolute value, of the operand's type.",
        dunder="__abs__",
        math_name="abs",
    )

    yield _binary("eq", "==", "comparison", "Whether both are equal.")
    yield _binary("ne", "!=", "comparison", "Whether both differ.")
    yield _binary("lt", "<", "comparison", "Whether `left` is less.")
    yield _binary("le", "<=", "comparison", "Whether `left` is less or equal.")
    yield _binary("gt", ">", "comparison", "Whether `left` is greater.")
    yield _binary("ge", ">=", "comparison", "Whether `left` is greater or equal.")

    yield _binary("and", "&", "bitwise", "Bits that are set in both.")
    yield _binary("or", "|", "bitwise", "Bits that are set in either.")
    yield _binary("xor", "^", "bitwise", "Bits that are set in just one.")
    yield _binary(
        "lshift",
        "<<",
        "shift",
        "`left` shifted up by `right` bits. As on x86, only the low five bits of `right` count, "
        "six for 64-bit integers.",
    )
    yield _binary("rshift", ">>", "shift", "`left` shifted down by `right` bits; see `<<`.")
    yield Operation(
        "invert",
        "bitwise",
        ("input",),
        "All bits inverted; of booleans the negation.",
        symbol="~",
        dunder="__invert__",
        booleans=True,
    )

    yield _math("sqrt", "Square root; not a number below zero.")
    yield _math("rsqrt", "Reciprocal of the square root; infinite at zero.")
    yield _math("cbrt", "Cube root.")
    yield _math("exp", "Exponential function.")
    yield _math("log", "Natural logarithm; minus infinity at zero.")
    yield _math("log2", "Logarithm to the base 2.")
    yield _math("log10", "Logarithm to the base 10.")
    yield _math("fabs", "Absolute value, as a real number.")
    yield _math("floor", "Largest integer that is not greater, as a real number.")
    yield _math("ceil", "Smallest integer that is not less, as a real number.")
    yield _math("sin", "Sine of an angle in radians.")
    yield _math("cos", "Cosine of an angle in radians.")
    yield _math("tan", "Tangent of an angle in radians.")
    yield _math("asin", "Arc sine, in radians; not a number outside of [-1, 1].")
    yield _math("acos", "Arc cosine, in radians; not a number outside of [-1, 1].")
    yield _math("atan", "Arc tangent, in radians.")
    yield _math("sinh", "Hyperbolic sine.")
    yield _math("cosh", "Hyperbolic cosine.")
    yield _math("tanh", "Hyperbolic tangent.")
    yield _math("asinh", "Inverse hyperbolic sine.")
    yield _math("acosh", "Inverse hyperbolic cosine; not a number below 1.")
    yield _math("atanh", "Inverse hyperbolic tangent; not a number outside of [-1, 1].")
    yield Operation(
        "atan2",
        "real",
        ("x", "y"),
        "Angle, in radians, whose tangent is `x` / `y`, in the quadrant their signs tell.",
        math_name="atan2",
    )
    yield Operation(
        "fpow",
        "real",
        ("base", "exponent"),
        "`base` to the power of `exponent`, computed with real numbers.",
        math_name="fpow",
    )
    yield Operation("min", "arithmetic", ("left", "right"), "The smaller one.", math_name="min")
    yield Operation("max", "arithmetic", ("left", "right"), "The greater one.", math_name="max")
    yield Operation(
        "clamp",
        "arithmetic",
        ("value", "lo", "hi"),
        "`value`, but not below `lo` nor above `hi`; `hi` where `lo` is above it.",
        math_name="clamp",
    )


OPERATIONS: dict[str, Operation] = {o.name: o for o in _table()}
"""Every operation, by the name it has in expressions."""
