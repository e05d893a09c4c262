"""The types in which an operation reads its operands."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headrace.operators.support.arithmetic.operations import OPERATIONS
from headrace.operators.support.arithmetic.promotion import promote_all
from headrace.types import to_numpy_type

if TYPE_CHECKING:
    from headrace.operators.support.arithmetic.expression import TypedExpression


def operand_types(node: TypedExpression) -> tuple[np.dtype, ...]:
    """The type each operand of operation `node` is brought to before it is computed."""
    if OPERATIONS[node.kind].kind != "comparison":
        return (node.dtype,) * len(node.operands)
    left, right = node.operands
    promoted = np.dtype(to_numpy_type(promote_all([left.dali_type, right.dali_type])))
    if promoted.kind not in "iu":
        return (promoted, promoted)
    # Integers compare as the numbers they are, whatever type holds them.
    for constant, other in ((left, right), (right, left)):
        if constant.kind == "const" and _fits(constant.value, other.dtype):
            return (other.dtype, other.dtype)
    a, b = left.dtype, right.dtype
    if {a.kind, b.kind} == {"i", "u"} and max(a.itemsize, b.itemsize) == 8:
        wide = {"i": np.dtype(np.int64), "u": np.dtype(np.uint64)}
        return (wide[a.kind], wide[b.kind])
    common = np.promote_types(a, b)
    return (common, common)


def _fits(value: int, dtype: np.dtype) -> bool:
    if dtype.kind == "b":
        return value in (0, 1)
    limits = np.iinfo(dtype)
    return bool(limits.min <= value <= limits.max)
