"""Normalise user data for display: named outputs, each a list of arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from headrace.errors import ArgumentTypeError, LayoutError, ShapeError
from headrace.tensors.base import TensorBase, TensorListBase

_COLORS = (1, 3, 4)


class DisplayOutput(NamedTuple):
    """Some samples of one output of a pipeline.

    `name`: the user's name of it, or its number. `samples`: arrays in host memory. `layout`: layout
    of a sample, or "". `size`: number of samples of the batch.
    """

    name: str
    samples: list[np.ndarray]
    layout: str
    size: int


def taken(data: Any) -> Any:
    """The next batch of a pipeline, an iterator or a generator; what is none of these, itself."""
    if hasattr(data, "run") and hasattr(data, "build"):
        return data.run()
    return next(data) if hasattr(data, "__next__") else data


def outputs_of(data: Any, layout: str | None, most: int) -> list[DisplayOutput]:
    """The outputs in `data`, each with its first `most` samples."""
    parts = _named_parts(data)
    alone = len(parts) == 1
    return [_output(name, part, layout or "", most, alone=alone) for name, part in parts]


def _named_parts(data: Any) -> list[tuple[str, Any]]:
    if isinstance(data, Mapping):
        return [(str(name), value) for name, value in data.items()]
    if isinstance(data, (list, tuple)) and data:
        if all(isinstance(item, Mapping) for item in data):
            prefixes = [""] if len(data) == 1 else [f"{k} " for k in range(len(data))]
            return [
                (f"{prefix}{name}", value)
                for prefix, item in zip(prefixes, data, strict=True)
                for name, value in item.items()
            ]
        if any(_is_batch(item) for item in data) or _differ(data):
            return [(f"output {number}", item) for number, item in enumerate(data)]
    return [("", data)]


def _is_batch(item: Any) -> bool:
    return isinstance(item, TensorListBase) or hasattr(item, "batch_size")


def _differ(items: Any) -> bool:
    """Return True if the arrays differ in rank, which samples of one batch cannot."""
    return len({_axes(item) for item in items}) > 1


def _axes(item: Any) -> int:
    found = getattr(item, "ndim", None)
    if found is None:
        found = np.ndim(item)
    return int(found() if callable(found) else found)


def _output(name: str, data: Any, layout: str, most: int, *, alone: bool) -> DisplayOutput:
    if hasattr(data, "as_batch"):  # some samples of a batch of dynamic mode
        data = data.as_batch()
    if hasattr(data, "_backend"):  # dynamic mode
        data = data._backend()
    if isinstance(data, TensorListBase):
        batch = data[:most].as_cpu()  # type: ignore[attr-defined]
        rows = [np.asarray(row) for row in batch._memory.rows]
        return DisplayOutput(name, rows, batch.layout() or layout, len(data))
    if isinstance(data, (list, tuple)):
        pairs = [array_of(item, name) for item in data[:most]]
        own = next((own for _, own in pairs if own), "")
        return DisplayOutput(name, [array for array, _ in pairs], own or layout, len(data))
    array, own = array_of(data, name)
    if own[:1] == "N":
        return _batch(name, array, own[1:], most)
    if own:
        return DisplayOutput(name, [array], own, 1)
    if layout and array.ndim not in (len(layout), len(layout) + 1):
        raise LayoutError(
            f'The layout "{layout}" is that of a sample with {len(layout)} axes; the array has the '
            f"shape {array.shape}, which is neither one sample nor a batch of them."
        )
    if array.ndim > len(layout) if layout else not (alone and _is_one_sample(array)):
        return _batch(name, array, layout, most)
    return DisplayOutput(name, [array], layout, 1)


def _batch(name: str, array: np.ndarray, layout: str, most: int) -> DisplayOutput:
    if array.ndim == 0:
        raise ShapeError("A single number is no batch; there is nothing to look at.")
    return DisplayOutput(name, list(array[:most]), layout, len(array))


def array_of(item: Any, name: str) -> tuple[np.ndarray, str]:
    """`item` in host memory, and the layout it comes with."""
    layout = ""
    if hasattr(item, "_backend"):
        item = item._backend()
    if isinstance(item, TensorBase):
        layout = item.layout()
        item = item.as_cpu()
    elif hasattr(item, "detach"):  # PyTorch
        item = item.detach().cpu()
        if "bfloat16" in str(item.dtype):  # which NumPy does not know
            item = item.float()
    elif hasattr(item, "__cuda_array_interface__"):
        from headrace.tensors.gpu.tensor import TensorGPU

        item = TensorGPU(item).as_cpu()
    array = np.asarray(item)
    if array.dtype.kind not in "biuf":
        what = f"Output {name!r}" if name else "`data`"
        raise ArgumentTypeError(
            f"{what} is a {type(item).__name__} of {array.dtype} elements; expected a batch or a "
            "tensor of Headrace, arrays of NumPy, PyTorch, JAX or CuPy, a list of them, a "
            "dictionary of them, or what `Pipeline.run` or an iterator returned."
        )
    return array, layout


def _is_one_sample(array: np.ndarray) -> bool:
    """Return True if an array without metadata looks like one sample rather than a batch."""
    if array.ndim == 2 and array.dtype.kind == "f":
        return bool(array.shape[1] < 16 * array.shape[0])  # else rows of signals
    if array.ndim == 3:
        return array.shape[-1] in _COLORS or array.shape[0] in _COLORS
    return array.ndim < 3
