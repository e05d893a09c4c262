"""Indexing of tensors, and of all samples of a batch."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np

from headrace.errors import ConversionError, ShapeError, TooManyIndicesError
from headrace.experimental.dynamic import calling
from headrace.operators.support.registry import find
from headrace.types import ScalarConstant


def subscript(handle: Any, index: Any) -> Any:
    """The part of a tensor, or of each sample of a batch, that `index` selects."""
    items = list(index) if isinstance(index, tuple) else [index]
    _expand(items, handle)
    ndim = handle._reference.spec.ndim
    if ndim is not None and len(items) > ndim:
        raise TooManyIndicesError(f"There are {len(items)} indices for data with {ndim} axes.")
    arguments: dict[str, Any] = {}
    for axis, item in enumerate(items):
        if isinstance(item, slice):
            for part, value in (("lo", item.start), ("hi", item.stop), ("step", item.step)):
                if value is not None:
                    arguments[f"{part}_{axis}"] = _bound(value)
        else:
            arguments[f"at_{axis}"] = _position(item)
    if not arguments and ndim is not None and len(items) <= ndim:
        return handle
    name = "_tensor_subscript" if arguments else "_subscript_dim_check"
    arguments["num_subscripts"] = len(items)
    return calling.call(find(name), (handle,), None, None, arguments)


def _expand(items: list[Any], handle: Any) -> None:
    """Put as many full ranges in the place of an ellipsis as there are axes left."""
    places = [k for k, item in enumerate(items) if item is Ellipsis]
    if not places:
        return
    if len(places) > 1:
        raise ConversionError("An index can have one `...` only.")
    if places[0] == len(items) - 1:  # further axes are taken as they are anyway
        del items[-1]
        return
    missing = handle.ndim - (len(items) - 1)
    if missing < 0:
        raise ShapeError(f"There are {len(items) - 1} indices for data with {handle.ndim} axes.")
    items[places[0] : places[0] + 1] = [slice(None)] * missing


def _position(value: Any) -> Any:
    if isinstance(value, calling.TensorHandle):
        return value
    if isinstance(value, ScalarConstant):
        value = value.value
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value.item()
    if isinstance(value, (numbers.Integral, np.bool_)):
        return int(value)
    raise ConversionError(
        f"{value!r}, a {type(value).__name__}, is no index; expected an integer, a slice, `...` "
        "or a scalar tensor."
    )


def _bound(value: Any) -> Any:
    if isinstance(value, numbers.Real) and not isinstance(value, numbers.Integral):
        return int(float(value))  # cut off towards zero, as in DALI
    return _position(value)


class SampleIndexing:
    """``batch.slice``: what is taken of it is taken of each sample."""

    __slots__ = ("_batch",)

    def __init__(self, batch: Any) -> None:
        self._batch = batch

    def __getitem__(self, index: Any) -> Any:
        return subscript(self._batch, index)
