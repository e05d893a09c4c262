"""Columns of Ray Data as batches and as samples, and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from headrace.errors import ArgumentTypeError, ArgumentValueError
from headrace.operators.readers.arrow_arrays import ArrowValues
from headrace.operators.support.schema import Spec
from headrace.types import to_dali_type


def as_sample(value: Any, column: str) -> np.ndarray:
    """One value of a column as a sample: bytes, such as encoded images, are uint8."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        return np.frombuffer(value, np.uint8)
    found = np.asarray(value)
    if found.dtype.kind not in "biuf":
        raise ArgumentTypeError(
            f"The column {column!r} has values of the type {type(value).__name__}; numbers, arrays "
            "of numbers and bytes can be samples."
        )
    return found


def as_batch(values: Any, column: str) -> np.ndarray | list[np.ndarray]:
    """A column of a batch in the format "numpy" as what an external source takes."""
    if isinstance(values, np.ndarray) and values.dtype.kind in "biuf":
        return values
    return [as_sample(value, column) for value in values]


def as_column(samples: Sequence[np.ndarray]) -> np.ndarray:
    """Samples as a column, whose values are arrays where their shapes differ."""
    if len({sample.shape for sample in samples}) <= 1:
        return np.stack(samples) if samples else np.zeros(0)
    found = np.empty(len(samples), object)
    for k, sample in enumerate(samples):
        found[k] = sample
    return found


class TensorValues:
    """The values of a column of tensors, which Ray stores in types of its own, for rows of a block.

    `values`: dense, or of objects: arrays of different shapes.
    """

    def __init__(self, values: np.ndarray) -> None:
        self._values = values
        self.spec = Spec(to_dali_type(values[0].dtype), values[0].ndim)

    def rows(self, positions: Sequence[int]) -> list[np.ndarray | None]:
        """Those of some rows."""
        return [self._values[position] for position in positions]

    def alone(self, position: int) -> np.ndarray:
        """That of one row."""
        found: np.ndarray = self._values[position]
        return found

    def taken(self, positions: np.ndarray) -> np.ndarray | None:
        """Those of some rows as one array; `None` where their shapes may differ."""
        return None if self._values.dtype == object else self._values[positions]


def is_ray_tensor(kind: Any) -> bool:
    """Return True if a type of Arrow is one of those that Ray has for tensors."""
    return str(getattr(kind, "extension_name", "")).startswith("ray.data.")


def spec_of(values: ArrowValues | TensorValues) -> Spec:
    """The type of a value of a column."""
    return values.column.spec if isinstance(values, ArrowValues) else values.spec


def checked_columns(columns: Any) -> list[str]:
    """The names of columns; a string by itself is one."""
    names = [columns] if isinstance(columns, str) else list(columns)
    if not names or not all(isinstance(name, str) for name in names):
        raise ArgumentTypeError(f"`columns` is {columns!r}; expected names of columns.")
    if len(set(names)) < len(names):
        raise ArgumentValueError(f"`columns` is {names}; names must differ.")
    return names
