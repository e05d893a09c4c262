"""Arguments that readers of columns have in common."""

from __future__ import annotations

from typing import Any

from headrace.errors import ArgumentValueError
from headrace.operators.readers.grouped import CACHE_BYTES
from headrace.operators.support.argument_types import IntArg, StringListArg
from headrace.operators.support.schema import REQUIRED, Arg

COLUMNS_ARG = Arg(
    "columns",
    StringListArg,
    REQUIRED,
    "The columns to read: an output for each, in this order. A field of a structure is named with "
    'dots: ``"objects.bbox"``.',
)
CACHE_ARG = Arg(
    "cache_bytes",
    IntArg,
    CACHE_BYTES,
    "Memory for groups of rows that are kept after their first use; one at least is kept.",
)


def count_columns(args: dict[str, Any]) -> int:
    """Number of outputs that the argument `columns` asks for."""
    given = args["columns"]
    if isinstance(given, (list, tuple)) and not given:
        raise ArgumentValueError("`columns` is an empty list; name at least one column.")
    return len(given) if isinstance(given, (list, tuple)) else 1
