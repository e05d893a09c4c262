"""Element types of results: which type two operands are brought to, and what comes out."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from headrace.errors import DataTypeError
from headrace.operators.support.arithmetic.operations import OPERATIONS, Operation
from headrace.types import DALIDataType, to_dali_type, to_numpy_type
from headrace.types.dtypes import FLOATS, INTEGERS

NUMERIC = (DALIDataType.BOOL, *INTEGERS, *FLOATS)
_WIDEST_SIGNED = 8


def is_float(dtype: DALIDataType) -> bool:
    """True if `dtype` holds real numbers."""
    return dtype in FLOATS


def promote(left: DALIDataType, right: DALIDataType) -> DALIDataType:
    """The type two operands of an arithmetic operation are brought to.

    Booleans take the other's type, integers the real type next to them (however narrow it is),
    and two of a kind the wider one. An unsigned and a signed integer meet in a signed one that
    holds both, or in int64 where there is none. A Python number takes part as the type it has
    in an expression: int32, float32 or boolean.
    """
    if left == right or right is DALIDataType.BOOL:
        return left
    if left is DALIDataType.BOOL:
        return right
    if is_float(left) or is_float(right):
        return max((t for t in (left, right) if is_float(t)), key=FLOATS.index)
    a, b = np.dtype(to_numpy_type(left)), np.dtype(to_numpy_type(right))
    if a.kind == b.kind:
        return left if a.itemsize >= b.itemsize else right
    signed, unsigned = (a, b) if a.kind == "i" else (b, a)
    size = max(signed.itemsize, min(2 * unsigned.itemsize, _WIDEST_SIGNED))
    return to_dali_type(np.dtype(f"i{size}"))


def promote_all(types: Sequence[DALIDataType]) -> DALIDataType:
    """`promote` from left to right."""
    found = types[0]
    for other in types[1:]:
        found = promote(found, other)
    return found


def result_type(name: str, types: Sequence[DALIDataType]) -> DALIDataType:
    """Element type of operation `name` on operands of `types`."""
    operation = OPERATIONS[name]
    for dtype in types:
        if dtype not in NUMERIC:
            raise DataTypeError(
                f"`{operation.shown}` is defined for numbers and booleans, not for data of type "
                f"{dtype.name}. `fn.cast` converts it."
            )
    promoted = promote_all(types)
    if promoted is DALIDataType.BOOL and not operation.booleans:
        raise DataTypeError(_no_booleans(operation))
    if operation.kind in ("bitwise", "shift") and is_float(promoted):
        got = ", ".join(t.name for t in types)
        raise DataTypeError(
            f"Inputs to bitwise operator `{operation.shown}` must be of integral type, got {got}. "
            "`fn.cast` converts real numbers to one."
        )
    if operation.kind == "comparison":
        return DALIDataType.BOOL
    if operation.kind == "real" and not is_float(promoted):
        return DALIDataType.FLOAT
    return promoted


def _no_booleans(operation: Operation) -> str:
    if operation.arity == 1:
        return (
            f"Input to arithmetic operator `{operation.shown}` cannot be a boolean. Consider using "
            "bitwise operator `~` to negate it, or `fn.cast` to make a number of it."
        )
    return (
        f"Inputs to arithmetic operator `{operation.shown}` cannot be booleans. Consider using "
        "bitwise operators `&`, `|`, `^`, or `*`, or make one operand a number with `fn.cast`."
    )
