"""Arithmetic on tensors and batches: what ``a + b`` and ``math.sqrt(a)`` compute."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from headrace.errors import ArgumentTypeError, ArgumentValueError
from headrace.experimental.dynamic import calling
from headrace.experimental.dynamic.arguments import made
from headrace.experimental.dynamic.operations import OPERATIONS as CALLED
from headrace.experimental.dynamic.values import HostValue, ValueReference
from headrace.graph.expressions import constant_operand
from headrace.operators.support.arithmetic.operations import OPERATIONS, Operation
from headrace.operators.support.registry import find
from headrace.operators.support.schema import OpSchema, Spec
from headrace.tracebacks import hide_engine, public
from headrace.types import DALIDataType, ScalarConstant, storage_dtype

_FEW = 16
"""So many constants an operation is made ready for before numbers become data."""
_seen: dict[tuple[Any, ...], int] = {}


def apply(operation: Operation, operands: tuple[Any, ...]) -> Any:
    """The result of `operation`.

    Python numbers are constants of type `int32`, `float32` or `bool`; arrays, NumPy's scalars and
    lists become tensors.
    """
    key: list[Any] = [operation.name]
    references: list[ValueReference] = []
    size = None
    on_gpu = False
    for operand in operands:
        kind = type(operand)
        if kind is int or kind is bool:
            key.append((kind, operand))
            continue
        if kind is float:
            key.append((kind, operand if operand else str(operand)))  # 0.0 == -0.0
            continue
        if not isinstance(operand, calling.TensorHandle):
            if kind is ScalarConstant:
                key.append((kind, operand.dtype, operand.value, str(operand.value)))
                continue
            if operand is None:
                raise ArgumentValueError(f"An operand of `{operation.shown}` is None.")
            operand = calling.as_tensor(operand)
        reference = operand._reference
        key.append(None)
        references.append(reference)
        other = reference.size
        if other is not None and other != size:
            size = calling.common_size(_schema(), size, other)
        if reference.device != "cpu":
            on_gpu = True
    if not references:
        references.append(calling.as_tensor(operands[0])._reference)
        key[1] = None
    if on_gpu:
        given = [operand for operand, part in zip(operands, key[1:], strict=True) if part is None]
        references = calling.on_device(_schema(), "gpu", references, given, move=False)
        key.append("gpu")
    structure = tuple(key)
    found = CALLED.get(structure)
    if found is None and _is_one_of_many(structure):
        references = _with_numbers_as_data(operation, operands, structure, references)
        structure = (operation.name, *(None for _ in operands), *structure[len(operands) + 1 :])
        found = CALLED.get(structure)
    if found is None:
        found = CALLED.add(structure, _operation(operation, operands, structure, on_gpu))
    return calling.invoke(found, tuple(references), (), size)


def _is_one_of_many(structure: tuple[Any, ...]) -> bool:
    """True if the numbers of an operation have been different each time.

    An expression is made ready for its constants, which takes as long as computing it for some
    hundred thousand elements. Numbers that change are therefore handed over as data; results are
    the same, bit for bit.
    """
    pattern = tuple([part[0] if isinstance(part, tuple) else part for part in structure])
    if pattern == structure:
        return False
    count = _seen[pattern] = _seen.get(pattern, 0) + 1
    return count > _FEW


def _with_numbers_as_data(
    operation: Operation,
    operands: tuple[Any, ...],
    structure: tuple[Any, ...],
    references: list[ValueReference],
) -> list[ValueReference]:
    """The inputs of an operation, numbers among them."""
    others = iter(references)
    found = []
    for operand, part in zip(operands, structure[1:], strict=False):
        if part is None:
            found.append(next(others))
            continue
        _, number, dtype = constant_operand(operation, operand)
        found.append(_number(part, number, dtype))
    return found


@functools.lru_cache(maxsize=1024)
def _number(part: tuple[Any, ...], number: Any, dtype: DALIDataType) -> ValueReference:
    """A number as data: the same object for the same number, by which captured loops know it.

    `part` tells apart what is equal: 1, 1.0 and `True`, or 0.0 and -0.0.
    """
    with np.errstate(over="ignore"):
        array = np.array(number, storage_dtype(dtype))
    spec = Spec(dtype, 0)
    return ValueReference(spec, None, HostValue([array], spec))


def _operation(
    operation: Operation, operands: tuple[Any, ...], key: tuple[Any, ...], on_gpu: bool
) -> Any:
    children: list[Any] = []
    inputs = 0
    for operand, part in zip(operands, key[1:], strict=False):
        if part is None:
            children.append(("input", inputs))
            inputs += 1
        else:
            children.append(constant_operand(operation, operand))
    expression = (operation.name, *children)
    return made(_schema(), "gpu" if on_gpu else "cpu", {"expression": expression}, (), inputs)


@functools.cache
def _schema() -> OpSchema:
    return find("_arithmetic_generic_op")


def _forward(operation: Operation) -> Callable[..., Any]:
    def method(self: Any, *others: Any) -> Any:
        try:
            return apply(operation, (self, *others))
        except Exception as error:
            hide_engine(error)
            raise

    return method


def _reflected(operation: Operation) -> Callable[..., Any]:
    def method(self: Any, other: Any) -> Any:
        try:
            return apply(operation, (other, self))
        except Exception as error:
            hide_engine(error)
            raise

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
    names = operation.parameters
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    signature = inspect.Signature([inspect.Parameter(name, kind) for name in names])

    @public
    def function(*operands: Any, **named: Any) -> Any:
        if named or len(operands) != len(names):
            try:
                operands = signature.bind(*operands, **named).args
            except TypeError as error:
                raise ArgumentTypeError(f"{operation.math_name}(): {error}") from None
        return apply(operation, operands)

    function.__signature__ = signature  # type: ignore[attr-defined]
    return function
