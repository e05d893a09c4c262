"""Columns of Ray Data as batches, and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from headrace.errors import ArgumentTypeError, ArgumentValueError


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


def checked_columns(columns: Any) -> list[str]:
    """The names of columns; a string by itself is one."""
    names = [columns] if isinstance(columns, str) else list(columns)
    if not names or not all(isinstance(name, str) for name in names):
        raise ArgumentTypeError(f"`columns` is {columns!r}; expected names of columns.")
    if len(set(names)) < len(names):
        raise ArgumentValueError(f"`columns` is {names}; names must differ.")
    return names
