"""Python's numbers as arrays of a type, unless that type would change their value."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.errors import NumberOverflowError, ShapeError
from headrace.types.dtypes import DALI_OF_NUMPY


def fitted(
    value: Any, dtype: np.dtype[Any], way_out: str = "", *, whole: bool = False
) -> np.ndarray:
    """A number, or a nested list of numbers, as an array of `dtype`; see `check_fits`."""
    found = numbers_of(value)
    check_fits(found, dtype, way_out, whole=whole)
    if found.dtype.kind in "iub" or found.dtype == dtype:
        return found.astype(dtype)
    # Integers among floats keep all of their digits.
    return np.array(value, np.float64 if dtype.kind == "f" else dtype).astype(dtype)


def numbers_of(value: Any) -> np.ndarray:
    """A number, or a nested list, as NumPy's; a ShapeError for lists that differ in length."""
    try:
        return np.asarray(value)
    except ValueError as error:
        raise ShapeError(
            f"Lists that are nested must be equally long to be one array: {_ragged(value)}. Fill "
            "up the shorter ones, or make each a sample: samples of a batch may differ in shape."
        ) from error


def _ragged(value: Any, at: str = "") -> str:
    """The first two elements that differ in length."""
    lengths = [_length(each) for each in value]
    for k, length in enumerate(lengths):
        if length != lengths[0]:
            return " and ".join(
                f"element {at}[{i}] " + ("is a number" if n is None else f"has {n}")
                for i, n in ((0, lengths[0]), (k, length))
            )
    found = (_ragged(each, f"{at}[{k}]") for k, each in enumerate(value) if _length(each))
    return next(filter(None, found), "" if at else "they differ in depth")


def _length(value: Any) -> int | None:
    return len(value) if isinstance(value, (list, tuple)) else (np.shape(value) or (None,))[0]


def check_fits(
    values: np.ndarray, dtype: np.dtype[Any], way_out: str = "", *, whole: bool = False
) -> None:
    """Check that `dtype` has room for `values`.

    Any number is true or false, and floats have infinity and NaN. Rounding is no misfit.

    Parameters
    ----------
    values
        Numbers of any type, also Python's.
    dtype
        The type that they are to have.
    way_out
        A sentence for the message.
    whole
        Refuse fractions for integers, and what is neither 0 nor 1 for booleans, too.

    Raises
    ------
    NumberOverflowError
        With the first that does not fit.
    """
    kind = values.dtype.kind
    if kind not in "biufO" or kind == "b" or not values.size:
        return
    low, high = _range(dtype, whole)
    if kind in "iu" and low <= int(values.min()) and int(values.max()) <= high:
        return
    values = values.reshape(-1)
    fits = (values >= low) & (values <= high)
    if dtype.kind == "f":
        fits |= (values != values) | (abs(values) == np.inf)
    elif kind == "f" and dtype.kind in "iu":
        fits &= values < float(high) + 1  # float64 has no 2**63 - 1
    if whole and dtype.kind != "f":
        inside = np.where(fits, values, 0)
        fits &= inside == inside // 1
    if fits.all():
        return
    value = values[int(np.argmin(fits))]
    value = value.item() if isinstance(value, np.generic) else value
    room = "holds whole numbers" if low <= value <= high else f"goes from {low} to {high}"
    raise NumberOverflowError(
        f"{value!r} does not fit into {dtype}, which {room}. "
        + (way_out or f"Give it a type that holds it, as with `dtype=types.{_wide(value)}`.")
    )


def _range(dtype: np.dtype[Any], whole: bool) -> tuple[float, float]:
    if dtype.kind == "b":
        return (0, 1) if whole else (-np.inf, np.inf)
    limits = np.iinfo(dtype) if dtype.kind in "iu" else np.finfo(dtype)
    kind = int if dtype.kind in "iu" else float
    return kind(limits.min), kind(limits.max)


def _wide(value: float) -> str:
    for dtype in (np.int32, np.uint32, np.int64, np.uint64):
        limits = np.iinfo(dtype)
        if isinstance(value, int) and limits.min <= value <= limits.max:
            return DALI_OF_NUMPY[np.dtype(dtype)].name
    return "FLOAT64" if float(np.finfo(np.float32).max) < abs(value) < np.inf else "FLOAT"
