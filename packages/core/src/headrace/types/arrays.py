"""Arrays of other libraries as NumPy's, for constants and arguments."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.errors import ArgumentTypeError


def is_array(value: Any) -> bool:
    """Return True if `value` is an array of NumPy, PyTorch, JAX or any library that converts to
    NumPy's.

    It is one where its type has ``__array__`` and it tells its element type and shape.
    """
    return hasattr(type(value), "__array__") and isinstance(getattr(value, "shape", None), tuple)


def to_numpy(value: Any) -> Any:
    """An array of any library as one of NumPy, copied from a GPU where it is there; `value` itself
    if it is no array.

    Raises
    ------
    ArgumentTypeError
        If NumPy has no such element type.
    """
    if isinstance(value, (np.ndarray, np.generic)) or not is_array(value):
        return value
    detach = getattr(value, "detach", None)  # PyTorch's: no gradient goes through a pipeline
    try:
        return np.asarray(value if detach is None else detach().cpu())
    except TypeError as error:
        raise ArgumentTypeError(
            f"expected numbers of a type that NumPy has, got a {type(value).__name__} of "
            f"{value.dtype}"
        ) from error
