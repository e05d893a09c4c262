"""Side data: texts and objects of Python that travel beside tensors, kept as bytes in between."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np

from headrace.errors import DataTypeError
from headrace.types.dtypes import SIDE_TYPES
from headrace.types.enums import DALIDataType


def encoded(value: Any, dtype: DALIDataType) -> np.ndarray:
    """The bytes that stand for a text (`types.STRING`) or an object (`types.PYTHON_OBJECT`)."""
    if dtype == DALIDataType.STRING:
        if not isinstance(value, str):
            raise DataTypeError(
                f"A text (types.STRING) is expected, got {value!r} of type {type(value).__name__}; "
                "types.PYTHON_OBJECT is for objects of any type."
            )
        return np.frombuffer(value.encode(), np.uint8)
    try:
        return np.frombuffer(pickle.dumps(value, protocol=5), np.uint8)
    except Exception as error:  # objects raise what they like
        raise DataTypeError(
            f"Side data of type {type(value).__name__} cannot be pickled: {error}."
        ) from error


def decoded(row: np.ndarray, dtype: DALIDataType) -> Any:
    """The text or object that bytes of `encoded` stand for."""
    if dtype == DALIDataType.STRING:
        return row.tobytes().decode(errors="surrogateescape")
    return pickle.loads(row.tobytes())


def as_objects(values: list[Any]) -> np.ndarray:
    """An array of objects, whatever these are."""
    found = np.empty(len(values), object)
    for k, value in enumerate(values):
        found[k] = value
    return found


__all__ = ["SIDE_TYPES", "as_objects", "decoded", "encoded"]
