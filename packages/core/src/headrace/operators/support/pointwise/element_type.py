"""The element type that an operator on pixels makes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from headrace.errors import DataTypeError
from headrace.types import DALIDataType

if TYPE_CHECKING:
    from headrace.operators.support.schema import Spec


def element_type(args: Any, data: Spec, allowed: Sequence[DALIDataType]) -> DALIDataType:
    """Element type given by an operator's argument `dtype`, else that of its input."""
    dtype: DALIDataType = data.dtype if args.dtype is None else args.dtype
    if dtype not in allowed:
        names = ", ".join(t.name for t in allowed)
        raise DataTypeError(
            f"`dtype` is {dtype.name}; allowed are {names}. Use `fn.cast` after the operator for "
            "others."
        )
    return dtype
