"""Arrays as Squirrel stores them: which may be read, and where their elements go."""

from __future__ import annotations

import math
import pickle
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.errors import BadSampleError, DataTypeError, ShapeError
from headrace.tensors.pool import HOST_POOL

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

KINDS = "biuf"
"""Kinds of elements that go into tensors: booleans, integers, floats."""


class PickleRefusedError(BadSampleError):
    """A shard holds a pickled array, and loading it would run code that comes with the data."""


def stored_dtype(descr: Any) -> np.dtype[Any]:
    """The element type that `descr`, from a shard, describes."""
    try:
        dtype: np.dtype[Any] = np.dtype(_described(descr))
    except (TypeError, ValueError, SyntaxError) as error:
        raise BadSampleError(f"an array's element type is {descr!r}: {error}") from error
    if dtype.hasobject:
        raise BadSampleError(f"an array's element type {dtype} holds Python objects")
    return dtype


def _described(descr: Any) -> Any:
    if isinstance(descr, bytes):
        return descr.decode()
    if isinstance(descr, (list, tuple)):
        # Lists became tuples on the way, and a structured type is a list of tuples.
        return [
            (_described(field[0]), _described(field[1]), *(tuple(s) for s in field[2:]))
            for field in descr
        ]
    return descr


def checked_size(dtype: np.dtype[Any], shape: Any, size_bytes: int) -> tuple[int, ...]:
    """`shape` as a tuple, if an array of it takes `size_bytes`."""
    if not isinstance(shape, (list, tuple)) or not all(
        isinstance(extent, int) and extent >= 0 for extent in shape
    ):
        raise BadSampleError(f"an array's shape is {shape!r}")
    if math.prod(shape) * dtype.itemsize != size_bytes:
        raise BadSampleError(
            f"an array of shape {tuple(shape)} and type {dtype} comes with {size_bytes} bytes"
        )
    return tuple(shape)


def filled(
    dtype: np.dtype[Any], shape: tuple[int, ...], fill: Callable[[memoryview], bool]
) -> np.ndarray | None:
    """An array whose bytes `fill` puts in, in this machine's byte order; `None` if it cannot."""
    pooled = dtype.kind in KINDS
    array = HOST_POOL.empty(shape, dtype) if pooled else np.empty(shape, dtype)
    if array.size and dtype.itemsize:
        raw: Any = array.reshape(-1).view(np.uint8) if pooled else bytearray(array.nbytes)
        if not fill(memoryview(raw)):
            return None
        if not pooled:  # structures and text, which have no bytes to be written to
            array = np.frombuffer(raw, dtype).reshape(shape)
    if not dtype.isnative:
        array = array.astype(dtype.newbyteorder("="))
    return array


def unpickled(data: bytes, *, allowed: bool) -> Any:
    """An array that was pickled because it holds Python objects."""
    if not allowed:
        raise PickleRefusedError(
            "it holds an array of Python objects, which is stored as a pickle, and loading a "
            "pickle runs whatever code its author put in. Store numbers in place of objects, or, "
            "if you trust where the data comes from, pass `allow_pickle=True`."
        )
    try:
        return pickle.loads(data)
    except Exception as error:  # a pickle may raise anything
        raise BadSampleError(
            f"an array of Python objects cannot be unpickled: {error!r}"
        ) from error


def as_tensor(value: Any, field: str) -> np.ndarray:
    """Convert a field to an array of numbers.

    Arrays stay what they are. Bytes become uint8 ``(size,)``, so that encoded images can be
    decoded; Python's numbers become int64, float64 and bool, as they do in NumPy.
    """
    if isinstance(value, np.ndarray):
        array = value
    elif isinstance(value, (bytes, bytearray)):
        array = np.frombuffer(value, np.uint8)
    elif isinstance(value, (bool, int, float, np.generic)):
        array = np.asarray(value)
    elif isinstance(value, (list, tuple)):
        try:
            array = np.asarray(value)
        except ValueError as error:
            raise ShapeError(
                f"The field {field!r} holds a list that is no tensor: {error}"
            ) from error
    else:
        raise DataTypeError(
            f"The field {field!r} holds {_described_value(value)}, which is no tensor. Leave it "
            "out by naming the fields you want in `fields`, or turn it into numbers when the data "
            "set is written."
        )
    if array.dtype.kind == "O" and array.size:
        try:
            array = np.asarray(array.tolist())
        except ValueError as error:
            raise ShapeError(
                f"The field {field!r} holds objects that are no tensor: {error}"
            ) from error
    if array.dtype.kind not in KINDS or array.dtype.itemsize > 8:
        raise DataTypeError(
            f"The field {field!r} holds elements of type {array.dtype}; booleans, integers and "
            "floats of up to 64 bits make a tensor. Leave it out by naming the fields you want in "
            "`fields`."
        )
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    return array


def _described_value(value: Any) -> str:
    if isinstance(value, str):
        return f"text ({value[:40]!r})"
    if value is None:
        return "nothing (None)"
    if isinstance(value, dict):
        return f"a dictionary with the keys {list(value)[:8]!r}"
    return f"a {type(value).__name__}"


def nbytes_of(values: Sequence[Any]) -> int:
    """About how much memory `values` take."""
    return sum(getattr(value, "nbytes", 0) or 64 for value in values)
