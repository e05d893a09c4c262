"""What the user demands of a pipeline's outputs: type, rank and layout."""

from __future__ import annotations

from typing import Any

from penstock.errors import DataTypeError, LayoutError, ShapeError, UsageError


def per_output(value: Any, count: int) -> list[Any]:
    """One demand for each output.

    Raises
    ------
    UsageError
        If a list of another length was given.
    """
    if isinstance(value, (list, tuple)):
        if len(value) != count:
            raise UsageError(
                f"Lengths of provided output descriptions do not match: {len(value)} were given "
                f"for {count} outputs."
            )
        return list(value)
    return [value] * count


def check_output(number: int, batch: Any, dtype: Any, ndim: Any, layout: Any) -> None:
    """Check one output of one iteration; `None` and an empty layout demand nothing."""
    if dtype is not None and batch.dtype != dtype:
        raise DataTypeError(
            f"Data type in the output_idx={number} does not match. Expected: {dtype.name}. "
            f"Received: {batch.dtype.name}."
        )
    if ndim is not None and len(batch) and batch.ndim() != ndim:
        raise ShapeError(
            f"Number of dimensions in the output_idx={number} does not match. Expected: {ndim}. "
            f"Received: {batch.ndim()}."
        )
    if layout and (batch.layout() or "") != layout:
        raise LayoutError(
            f"Layout in the output_idx={number} does not match. Expected: {layout}. "
            f"Received: {batch.layout() or ''}."
        )
