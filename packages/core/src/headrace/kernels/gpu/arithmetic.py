"""The operations of expressions, as terms for generated kernels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from headrace.kernels.cpu.arithmetic import TRANSCENDENTAL
from headrace.kernels.gpu.pointwise_terms import Call, Constant, Fault, Term
from headrace.kernels.gpu.program import C_TYPES

_MOST_NEGATIVE = -(1 << 63)
_COMPARISONS = frozenset(("eq", "ne", "lt", "le", "gt", "ge"))


def brought(term: Term, dtype: np.dtype) -> Term:
    """`term` as a number of type `dtype`; integers are cut off, not saturated."""
    if term.dtype == dtype:
        return term
    return Call(f"as<{C_TYPES[dtype]}>", (term,), dtype)


def operation(
    name: str, operands: Sequence[Term], dtype: np.dtype, last: Any, fault: Fault | None
) -> Term:
    """Operation `name` on operands of the types it reads."""
    types = [o.dtype for o in operands]
    kind = types[0].kind
    given: tuple[Any, ...] = tuple(operands)
    if name == "mul" and kind == "b":
        name = "and"
    elif name == "floordiv" and kind == "f":
        name = "div"
    function = f"op_{name}"
    if name in ("floordiv", "mod") and kind in "iu":
        if may_fault(name, types[0], last):
            given = (*operands, fault)
        else:
            function = "whole_quotient" if name == "floordiv" else "whole_remainder"
    elif name == "mod":
        function = "remainder_of_reals"
    elif name in ("pow", "fpow"):
        if last == 2:
            return Call(f"op_mul<{C_TYPES[dtype]}>", (operands[0], operands[0]), dtype)
        function = "whole_power" if kind in "iu" else "op_fpow"
    # Each type that differs from the one before is a parameter of the template of its own.
    arguments = types[:2] if name in _COMPARISONS else types[:1]
    written = f"{function}<{', '.join(C_TYPES[t] for t in arguments)}>"
    return Call(written, given, dtype, heavy=name in TRANSCENDENTAL)


def may_fault(name: str, dtype: np.dtype, last: Any) -> bool:
    """True if an operation on operands of `dtype` may be a division by zero."""
    return name in ("floordiv", "mod") and dtype.kind in "iu" and last is None


def constant(value: Any, dtype: np.dtype) -> Term:
    """A Python number of type `dtype` as a term."""
    return Constant(_literal(value, dtype), dtype)


def _literal(value: Any, dtype: np.dtype) -> str:
    if dtype.kind == "b":
        return "true" if value else "false"
    if dtype.kind == "f":
        real = _real(float(dtype.type(value)), dtype.itemsize == 8)
        return f"__float2half_rn({real})" if dtype.itemsize == 2 else real
    if value == _MOST_NEGATIVE:  # there is no literal of its magnitude
        return f"({value + 1}ll - 1)"
    return f"static_cast<{C_TYPES[dtype]}>({value}{'ull' if dtype.kind == 'u' else 'll'})"


def _real(value: float, double: bool) -> str:
    if math.isfinite(value):
        return value.hex() if double else f"{value.hex()}f"
    if double:
        bits = np.float64(value).view(np.uint64)
        return f"__longlong_as_double({int(bits):#x}ll)"
    bits = np.float32(value).view(np.uint32)
    return f"__int_as_float({int(bits):#x})"
