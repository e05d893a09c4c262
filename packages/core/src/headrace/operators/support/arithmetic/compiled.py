"""Expressions of float32 numbers as an instruction of `headrace.kernels.cpu.arithmetic_steps`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from headrace.operators.support.arithmetic.expression import TypedExpression
from headrace.operators.support.compiled_steps import CompiledStepContext, SampleColumns, Word

_MOST_OPERATIONS = 16


def compiled_expression(
    c: CompiledStepContext, root: TypedExpression, inputs: Sequence[SampleColumns]
) -> SampleColumns | None:
    """The instruction for an expression; `None` if it has other types, or other operations."""
    from headrace.kernels.cpu import arithmetic_steps as steps
    from headrace.kernels.cpu import pointwise_steps, step_loops

    inputs = list(inputs)
    constants: list[float] = []
    operations: list[int] = []
    used: list[int] = []

    def operand(node: TypedExpression) -> int | None:
        """Number of an operand, after the operations that it takes."""
        if node.kind == "const":
            constants.append(float(np.float32(node.value)))
            return steps.CONSTANT + len(constants) - 1
        if node.kind == "input":
            number: int = node.value
            given = inputs[number]
            if given.ndim not in (0, root.ndim):
                return None
            if given.dtype != np.float32:
                # Numbers that float32 holds become such in the first operation.
                if not pointwise_steps.casts(given.dtype, np.dtype(np.float32)):
                    return None
                wide = c.steps.place(np.dtype(np.float32), given.ndim, leaves=False)
                carry = pointwise_steps.casting(given.dtype, wide.dtype)
                c.steps.add(step_loops.plan_alike, carry, (*given.words, *wide.words[:2]))
                inputs[number] = wide
            if number not in used:
                used.append(number)
            return used.index(number)
        if node.dtype != np.float32:
            return None
        # What has no axes is worked out with other numbers.
        if node.is_scalar or node.kind not in steps.OPERATIONS:
            return None
        found = [operand(each) for each in node.operands]
        if None in found:
            return None
        operations.extend((steps.OPERATIONS[node.kind], *found))  # type: ignore[arg-type]
        return steps.RESULT + len(operations) // 3 - 1

    result = operand(root)
    if result is None or result < steps.RESULT or len(operations) > 3 * _MOST_OPERATIONS:
        return None
    out = c.out()
    count = len(operations) // 3
    words: list[Word] = [*out.words, c.temp(count * steps.TILE), len(used)]
    for number in used:
        words += inputs[number].words
    words += [len(constants), *constants, count, *operations]
    c.steps.add(steps.plan, steps.carry, words)
    return out
