"""Content of TFRecord files: descriptions of features, for `fn.readers.tfrecord`."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any

from headrace.errors import ArgumentChoiceError, ArgumentTypeError, DataTypeError
from headrace.tracebacks import public
from headrace.types.features import FEATURE_TYPES as _NAMES
from headrace.types.features import Feature

__path__: list[str] = []
"""Makes `from headrace.tfrecord import` of a misspelt name tell one that is alike."""

__all__ = ["Feature", "FixedLenFeature", "VarLenFeature", "float32", "int64", "string"]

int64: int = 0
"""Integers of 64 bits."""
string: int = 1
"""Bytes, such as encoded images."""
float32: int = 2
"""Floating-point numbers of 32 bits."""

_DEFAULTS: dict[int, type] = {int64: int, string: str, float32: float}


def __dir__() -> list[str]:
    return [*__all__]


@public
def FixedLenFeature(shape: Sequence[int], dtype: int, default_value: Any, /) -> Feature:  # noqa: N802
    """A feature of which every record has a tensor of one shape.

    Parameters
    ----------
    shape
        Extents of the tensor; ``[]`` for a single value.
    dtype
        `int64`, `string` or `float32`.
    default_value
        Value for records that lack the feature: an int, a string or a float.

    Raises
    ------
    ArgumentTypeError
        If `shape` is no sequence of integers, or `default_value` is not of `dtype`.
    ArgumentChoiceError
        If `dtype` is none of the three.
    """
    return _feature("FixedLenFeature", shape, dtype, default_value, has_shape=True)


@public
def VarLenFeature(*arguments: Any) -> Feature:  # noqa: N802
    """A feature of which every record has a list of its own length.

    ``VarLenFeature(dtype, default_value)`` or ``VarLenFeature(partial_shape, dtype,
    default_value)``.

    Parameters
    ----------
    *arguments
        `partial_shape`, the extents of what the list is made of, where these are not single
        values; `dtype` and `default_value` as of `FixedLenFeature`.

    Raises
    ------
    ArgumentTypeError, ArgumentChoiceError
        As of `FixedLenFeature`, or if there are not two or three of them.
    """
    if len(arguments) not in (2, 3):
        raise ArgumentTypeError(
            "`VarLenFeature` takes (dtype, default_value) or (partial_shape, dtype, "
            f"default_value), got {len(arguments)} arguments."
        )
    shape, dtype, default = ((), *arguments) if len(arguments) == 2 else arguments
    return _feature("VarLenFeature", shape, dtype, default, has_shape=False)


def _feature(what: str, shape: Any, dtype: Any, default: Any, *, has_shape: bool) -> Feature:
    if not isinstance(shape, Sequence) or not all(isinstance(n, numbers.Integral) for n in shape):
        raise ArgumentTypeError(
            f"`{what}`: the shape is {shape!r}; expected a list of integers, [] for single values."
        )
    if not isinstance(dtype, numbers.Integral):
        raise ArgumentTypeError(_wrong_type(what, dtype))
    if dtype not in _NAMES:
        raise ArgumentChoiceError(_wrong_type(what, dtype))
    expected = _DEFAULTS[int(dtype)]
    if not isinstance(default, (int, float, str)) or not isinstance(default, expected):
        raise DataTypeError(
            f"`{what}`: the default value of a feature of type `{_NAMES[int(dtype)]}` is of type "
            f"{expected.__name__}, got {default!r}."
        )
    return Feature(tuple(map(int, shape)), int(dtype), default, has_shape)


def _wrong_type(what: str, dtype: Any) -> str:
    return (
        f"`{what}`: the type is {dtype!r}; expected `tfrecord.int64`, `tfrecord.string` or "
        "`tfrecord.float32`."
    )
