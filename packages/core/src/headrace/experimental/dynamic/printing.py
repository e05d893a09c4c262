"""Printing of tensors and batches of dynamic mode: values first, then their properties."""

from __future__ import annotations

import textwrap
from typing import Any

from headrace.tensors import _html
from headrace.tensors._repr import shapes_text, shown, values

_SHAPES_SHOWN = 8


def tensor_text(tensor: Any) -> str:
    """``Tensor(values, dtype=..., ...)``."""
    found = tensor._backend()
    return _described("Tensor", _text(found), tensor, f"shape={tensor.shape}")


def batch_text(batch: Any) -> str:
    """``Batch([values of a sample, ...], dtype=..., ...)``."""
    found = batch._backend()
    texts = ["..." if n is None else _text(found[n]) for n in shown(found.shape())]
    joint = ",\n " if found.ndim() else ", "
    text = "[" + joint.join(text.replace("\n", "\n ") for text in texts) + "]"
    return _described("Batch", text, batch, *_sizes(batch))


def tensors_text(tensors: Any) -> str:
    """``TensorList(num_samples=..., ...)``, one line about some samples of a batch."""
    batch = tensors.as_batch()
    size, shape = _sizes(batch)
    return f'TensorList({size}, {shape}, dtype={batch.dtype}, device="{batch.device}")'


def tensor_html(tensor: Any) -> str:
    """The same as a table, for notebooks."""
    return _html.of_tensor(f"Tensor(shape={tensor.shape}, {_type(tensor)})", tensor._backend())


def batch_html(batch: Any) -> str:
    """The same as a table, for notebooks."""
    title = f"Batch({', '.join(_sizes(batch))}, {_type(batch)})"
    return _html.of_batch(title, batch._backend())


def _type(handle: Any) -> str:
    return f'dtype={handle.dtype}, layout="{handle.layout or ""}", device="{handle.device}"'


def _sizes(batch: Any) -> tuple[str, str]:
    shapes = batch.shape
    shape = str(shapes) if len(shapes) <= _SHAPES_SHOWN else shapes_text(shapes)
    return f"num_samples={batch.batch_size}", f"shape={shape}"


def _described(name: str, text: str, handle: Any, *more: str) -> str:
    parts = [textwrap.indent(text, "    "), f"    dtype={handle.dtype}"]
    if handle.layout:
        parts.append(f'    layout="{handle.layout}"')
    parts.append(f'    device="{handle.device}"')
    parts += [f"    {part}" for part in more]
    return f"{name}(\n" + ",\n".join(parts) + ")"


def _text(tensor: Any) -> str:
    return values(tensor.as_cpu()._array, tensor.dtype, separator=" ")
