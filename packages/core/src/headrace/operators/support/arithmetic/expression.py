"""Expressions as nested tuples, and what is known of them before any data exists.

An expression is one of

* ``("input", k)``: input number `k` of the operator;
* ``("const", value, dtype)``: a number of a known element type;
* ``(name, operand, ...)``: an operation of `OPERATIONS` on further expressions.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from headrace.errors import ArgumentTypeError, ArgumentValueError, LayoutError, NumberOverflowError
from headrace.operators.support.arithmetic.operations import OPERATIONS
from headrace.operators.support.arithmetic.promotion import NUMERIC, is_float, result_type
from headrace.operators.support.schema import Spec
from headrace.types import DALIDataType, to_numpy_type

Expression = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class TypedExpression:
    """An expression whose element type, rank and layout are known."""

    kind: str
    """``"input"``, ``"const"`` or the name of an operation."""
    dtype: np.dtype
    dali_type: DALIDataType
    ndim: int | None
    layout: str = ""
    operands: tuple[TypedExpression, ...] = ()
    value: Any = None
    """Number of the input, or the constant as a Python number."""

    @property
    def is_scalar(self) -> bool:
        """True if it is known to have no axes."""
        return self.ndim == 0

    @property
    def is_constant(self) -> bool:
        """True if it does not depend on any input."""
        return self.kind != "input" and all(o.is_constant for o in self.operands)


def inputs_of(expression: Expression) -> Iterator[int]:
    """Numbers of the inputs that occur, from left to right, repeated as they are."""
    if expression[0] == "input":
        yield expression[1]
    elif expression[0] != "const":
        for operand in expression[1:]:
            yield from inputs_of(operand)


def merge(
    expression: Expression,
    labels: Sequence[Hashable],
    replacements: Mapping[Hashable, tuple[Expression, Sequence[Hashable]]],
) -> tuple[Expression, list[Hashable]]:
    """Put the expressions that compute some inputs in the place of these inputs.

    An expression that replaces several occurrences of a label is computed as many times.

    Returns the expression of the whole tree and the labels of its inputs, each of them once, in
    order of their first occurrence.
    """
    found: dict[Hashable, int] = {}

    def walk(node: Expression, names: Sequence[Hashable]) -> Expression:
        if node[0] == "const":
            return node
        if node[0] == "input":
            label = names[node[1]]
            if label in replacements:
                return walk(*replacements[label])
            return ("input", found.setdefault(label, len(found)))
        return (node[0], *(walk(operand, names) for operand in node[1:]))

    return walk(expression, labels), list(found)


def typed(expression: Expression, inputs: Sequence[Spec]) -> TypedExpression:
    """Find types, ranks and layouts of `expression` and everything in it."""
    if not isinstance(expression, tuple) or not expression:
        raise ArgumentTypeError(f"An expression is a tuple, got {expression!r}.")
    kind = expression[0]
    if kind == "input":
        return _input(expression[1], inputs)
    if kind == "const":
        return _constant(expression[1], expression[2])
    operation = OPERATIONS.get(kind)
    if operation is None:
        raise ArgumentValueError(
            f"There is no operation {kind!r} in expressions; there are: {', '.join(OPERATIONS)}."
        )
    operands = tuple(typed(e, inputs) for e in expression[1:])
    if len(operands) != operation.arity:
        raise ArgumentValueError(
            f"`{operation.shown}` takes {operation.arity} operands, got {len(operands)}."
        )
    dtype = result_type(kind, [o.dali_type for o in operands])
    if kind == "pos":
        return operands[0]
    ranks = [o.ndim for o in operands]
    return TypedExpression(
        kind,
        np.dtype(to_numpy_type(dtype)),
        dtype,
        None if None in ranks else max(r for r in ranks if r is not None),
        _common_layout(operation.shown, operands),
        operands,
    )


def _input(number: int, inputs: Sequence[Spec]) -> TypedExpression:
    if not 0 <= number < len(inputs):
        raise ArgumentValueError(
            f"The expression reads input {number}, but there are {len(inputs)} inputs."
        )
    spec = inputs[number]
    numeric = spec.dtype in NUMERIC
    dtype = np.dtype(to_numpy_type(spec.dtype)) if numeric else np.dtype(np.int32)
    return TypedExpression("input", dtype, spec.dtype, spec.ndim, spec.layout, value=number)


def _constant(value: Any, dali_type: DALIDataType) -> TypedExpression:
    dtype = np.dtype(to_numpy_type(dali_type))
    number: bool | int | float
    if dali_type is DALIDataType.BOOL:
        number = bool(value)
    elif is_float(dali_type):
        with np.errstate(over="ignore"):
            number = float(dtype.type(value))
    else:
        number = int(value)
        limits: Any = np.iinfo(dtype)
        if not limits.min <= number <= limits.max:
            raise NumberOverflowError(
                f"The integer constant {number} is out of range for {dtype}. Say another type "
                f"with `types.Constant({number}, dtype=...)`."
            )
    return TypedExpression("const", dtype, dali_type, 0, value=number)


def _common_layout(shown: str, operands: Sequence[TypedExpression]) -> str:
    layout, first = "", 0
    for position, operand in enumerate(operands):
        other = operand.layout
        if other.endswith(layout):
            layout, first = other, position
        elif not layout.endswith(other):
            raise LayoutError(
                f'Operands {first} and {position} of `{shown}` have the layouts "{layout}" and '
                f'"{other}". They must be equal or one must be a suffix of the other, as "C" is '
                'of "HWC"; `fn.reshape(..., layout=...)` renames axes.'
            )
    return layout
