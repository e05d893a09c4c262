"""An expression made ready for the GPU: the term of a generated kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from headrace.kernels.cpu.arithmetic import IntegerDivisionByZeroError
from headrace.kernels.gpu import arithmetic as _gpu
from headrace.kernels.gpu import pointwise_terms as _terms
from headrace.operators.support.arithmetic import scalars
from headrace.operators.support.arithmetic.types import operand_types

if TYPE_CHECKING:
    import numpy as np

    from headrace.kernels.gpu.pointwise_terms import Term
    from headrace.operators.support.arithmetic.expression import TypedExpression


class DeviceProgram(NamedTuple):
    """Program that computes an expression on the GPU."""

    term: Term
    """Reads input ``k`` as source ``k``."""
    may_fault: bool
    """True if it may find a division by zero, which it reports as fault 0."""


def device_program(root: TypedExpression) -> DeviceProgram:
    """The term for `root`."""
    found = False

    def walk(node: TypedExpression) -> Term:
        nonlocal found
        if node.kind == "input":
            return _terms.source(node.value, node.dtype)
        types = operand_types(node)
        operands = [operand(o, t) for o, t in zip(node.operands, types, strict=True)]
        last = scalars.constant(node.operands[-1], types[-1])
        if node.kind in ("floordiv", "mod") and types[0].kind in "iu" and last == 0:
            raise IntegerDivisionByZeroError
        faults = _gpu.may_fault(node.kind, types[0], last)
        found = found or faults
        fault = _terms.fault(0) if faults else None
        return _gpu.operation(node.kind, operands, node.dtype, last, fault)

    def operand(node: TypedExpression, dtype: np.dtype) -> Term:
        if node.is_constant:
            return _gpu.constant(scalars.constant(node, dtype), dtype)
        return _gpu.brought(walk(node), dtype)

    return DeviceProgram(walk(root), found)
