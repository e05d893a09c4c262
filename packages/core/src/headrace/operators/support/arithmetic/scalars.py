"""Expressions without axes, computed with Python numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from headrace.kernels.cpu.scalar_arithmetic import conversion, scalar_function
from headrace.operators.support.arithmetic.types import operand_types

if TYPE_CHECKING:
    import numpy as np

    from headrace.operators.support.arithmetic.expression import TypedExpression

Inputs = Sequence["np.ndarray"]
ScalarFunction = Callable[[Inputs], Any]
"""From the inputs of a sample to a Python number."""


def compile_scalar(node: TypedExpression, dtype: np.dtype) -> ScalarFunction:
    """A function that computes `node`, which has no axes, and brings it to `dtype`."""
    convert = conversion(node.dtype, dtype)
    if node.is_constant:
        value = _value(node)([])
        final = value if convert is None else convert(value)
        return lambda inputs: final
    compute = _value(node)
    if convert is None:
        return compute
    return lambda inputs: convert(compute(inputs))


def constant(node: TypedExpression, dtype: np.dtype) -> Any:
    """The Python number that `node` is for all samples, brought to `dtype`; else `None`."""
    return compile_scalar(node, dtype)([]) if node.is_constant else None


def _value(node: TypedExpression) -> ScalarFunction:
    if node.kind == "const":
        value = node.value
        return lambda inputs: value
    if node.kind == "input":
        number = node.value
        return lambda inputs: inputs[number].item()
    types = operand_types(node)
    function = scalar_function(node.kind, types[0])
    operands = [compile_scalar(o, t) for o, t in zip(node.operands, types, strict=True)]
    # Written out by arity: unpacking a list would cost as much as the operation.
    first = operands[0]
    if len(operands) == 1:
        return lambda inputs: function(first(inputs))
    second = operands[1]
    if len(operands) == 2:
        return lambda inputs: function(first(inputs), second(inputs))
    third = operands[2]
    return lambda inputs: function(first(inputs), second(inputs), third(inputs))
