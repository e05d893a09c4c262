"""How tensors and batches of dynamic mode print: values first, then what they are."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.tensors._repr import shapes_text
from penstock.types.enums import DALIDataType, DALIImageType, DALIInterpType

if TYPE_CHECKING:
    from penstock.experimental.dynamic.batches import Batch
    from penstock.experimental.dynamic.tensors import Tensor

_MEMBERS: dict[str, Any] = {
    "DataType": DALIDataType,
    "ImageType": DALIImageType,
    "InterpType": DALIInterpType,
}
_SHOWN = 6
_SHAPES_SHOWN = 8


def tensor_text(tensor: Tensor) -> str:
    """``Tensor(values, dtype=..., ...)``."""
    text = _values(_host_rows(tensor)[0], tensor.dtype.name)
    return _described("Tensor", text, tensor, f"shape={tensor.shape}")


def batch_text(batch: Batch) -> str:
    """``Batch([values of a sample, ...], dtype=..., ...)``."""
    rows = _host_rows(batch)
    shown = rows if len(rows) <= _SHOWN else [*rows[: _SHOWN // 2], *rows[-(_SHOWN // 2) :]]
    texts = [_values(row, batch.dtype.name) for row in shown]
    if len(rows) > _SHOWN:
        texts.insert(_SHOWN // 2, "...")
    lines = any("\n" in text for text in texts)
    joint = ",\n\n " if lines else ",\n " if rows and rows[0].ndim else ", "
    text = "[" + joint.join(text.replace("\n", "\n ") for text in texts) + "]"
    size = f"num_samples={batch.batch_size}"
    shapes = batch.shape
    shape = str(shapes) if len(shapes) <= _SHAPES_SHOWN else shapes_text(shapes)
    return _described("Batch", text, batch, size, f"shape={shape}")


def _described(name: str, text: str, holder: Any, *more: str) -> str:
    parts = [textwrap.indent(text, "    "), f"    dtype={holder.dtype}"]
    if holder.layout:
        parts.append(f'    layout="{holder.layout}"')
    parts.append(f'    device="{holder.device}"')
    parts += [f"    {part}" for part in more]
    return f"{name}(\n" + ",\n".join(parts) + ")"


def _host_rows(holder: Any) -> list[np.ndarray]:
    found = holder.cpu()._backend()
    rows = getattr(found, "_memory", None)
    return rows.rows if rows is not None else [found._array]


def _values(array: np.ndarray, dtype: str) -> str:
    members = _MEMBERS.get(dtype)
    if members is not None:
        return np.array2string(array, formatter={"int": lambda v: members(int(v)).name})
    return np.array2string(array, threshold=100, edgeitems=3)
