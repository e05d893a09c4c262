"""Arithmetic on tensors and batches: what ``a + b`` and ``math.sqrt(a)`` compute."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penstock.errors import ArgumentTypeError, ArgumentValueError
from penstock.experimental.dynamic import calling
from penstock.graph.expressions import constant_operand
from penstock.operators.arithmetic.operations import OPERATIONS, Operation
from penstock.operators.registry import find
from penstock.types import ScalarConstant

_NUMBERS = (bool, int, float, ScalarConstant)


def apply(operation: Operation, operands: tuple[Any, ...]) -> Any:
    """The result of `operation`.

    Python numbers are constants of type `int32`, `float32` or `bool`; arrays, NumPy's scalars and
    lists become tensors.

    Raises
    ------
    ArgumentTypeError, ArgumentValueError
        If an operand is nothing to calculate with.
    """
    inputs: list[Any] = []
    children: list[Any] = []
    for operand in operands:
        if type(operand) in _NUMBERS:
            children.append(constant_operand(operation, operand))
            continue
        if operand is None:
            raise ArgumentValueError(f"An operand of `{operation.shown}` is None.")
        children.append(("input", len(inputs)))
        inputs.append(operand)
    if not inputs:
        inputs = [calling.as_tensor(operands[0])]
        children[0] = ("input", 0)
    return calling.call(
        find("_arithmetic_generic_op"),
        inputs,
        None,
        None,
        {"expression": (operation.name, *children)},
    )


def _forward(operation: Operation) -> Callable[..., Any]:
    def method(self: Any, *others: Any) -> Any:
        return apply(operation, (self, *others))

    return method


def _reflected(operation: Operation) -> Callable[..., Any]:
    def method(self: Any, other: Any) -> Any:
        return apply(operation, (other, self))

    return method


def install_operators(cls: type) -> None:
    """Give a class the operators of Python that there are operations for."""
    for operation in OPERATIONS.values():
        for name, make in ((operation.dunder, _forward), (operation.reflected, _reflected)):
            if name is not None:
                method = make(operation)
                method.__name__ = name
                method.__qualname__ = f"{cls.__name__}.{name}"
                method.__doc__ = operation.doc
                setattr(cls, name, method)


def function_of(operation: Operation) -> Callable[..., Any]:
    """The function of ``math`` for an operation."""

    def function(*operands: Any) -> Any:
        if len(operands) != operation.arity:
            raise ArgumentTypeError(
                f"{operation.math_name}() takes {operation.arity} operands, got {len(operands)}."
            )
        return apply(operation, operands)

    return function
