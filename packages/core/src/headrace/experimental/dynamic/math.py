"""Mathematical functions of tensors and batches, element by element.

Operands are `Tensor`, `Batch`, numbers or arrays; shapes broadcast as in NumPy. Functions of real
numbers give float32 for integers, and the operand's own type otherwise; none takes booleans only.
"""

from __future__ import annotations

from typing import Any

from headrace.experimental.dynamic.arithmetic import function_of
from headrace.operators.support.arithmetic.operations import OPERATIONS


def _functions() -> dict[str, Any]:
    found = {}
    for operation in OPERATIONS.values():
        if operation.math_name is None:
            continue
        function = function_of(operation)
        function.__name__ = function.__qualname__ = operation.math_name
        function.__module__ = __name__
        function.__doc__ = operation.doc
        found[operation.math_name] = function
    return found


globals().update(_functions())
__all__ = sorted(_functions())


def __dir__() -> list[str]:
    return [*__all__]
