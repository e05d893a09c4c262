"""User's requirements on a pipeline's outputs: type, rank and layout."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from headrace.errors import DataTypeError, LayoutError, ShapeError, UsageError
from headrace.types import DALIDataType

if TYPE_CHECKING:
    from headrace.pipeline.settings import Settings


class OutputChecks:
    """Demands on the outputs of a pipeline, checked in every iteration."""

    def __init__(self, settings: Settings, count: int) -> None:
        self._expected = list(
            zip(
                _per_output(settings.output_dtype, count),
                _per_output(settings.output_ndim, count),
                _per_output(settings.output_layout, count),
                strict=True,
            )
        )
        self._demands_any = any(
            dtype is not None or ndim is not None or layout
            for dtype, ndim, layout in self._expected
        )

    def check(self, batches: Sequence[Any]) -> None:
        """Check the outputs of an iteration."""
        if self._demands_any:
            for number, (batch, expected) in enumerate(zip(batches, self._expected, strict=True)):
                _check_output(number, batch, *expected)

    def dtypes(self) -> list[DALIDataType | None]:
        """The element type that is demanded of each output, if any."""
        return [dtype for dtype, _, _ in self._expected]

    def ndims(self) -> list[int | None]:
        """The number of dimensions that is demanded of each output, if any."""
        return [ndim for _, ndim, _ in self._expected]


def _per_output(value: Any, count: int) -> list[Any]:
    """One demand for each output."""
    if isinstance(value, (list, tuple)):
        if len(value) != count:
            raise UsageError(
                f"Lengths of provided output descriptions do not match: {len(value)} were given "
                f"for {count} outputs."
            )
        return list(value)
    return [value] * count


def _check_output(number: int, batch: Any, dtype: Any, ndim: Any, layout: Any) -> None:
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
