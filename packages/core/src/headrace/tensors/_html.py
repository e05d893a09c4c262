"""Tables for notebooks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from headrace.tensors._repr import shown, values

if TYPE_CHECKING:
    from headrace.tensors.base import TensorBase, TensorListBase


def table(title: str, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A table as HTML; all texts are escaped."""
    lines = ["<div>", f"<p><code>{escape(title)}</code></p>", "<table>"]
    lines.append(f"<thead>{_row('th', header)}</thead>")
    lines += ["<tbody>", *(_row("td", row) for row in rows), "</tbody>", "</table>", "</div>"]
    return "\n".join(lines)


def _row(tag: str, cells: Sequence[Any]) -> str:
    style = ' style="text-align: left"'
    inner = "".join(f"<{tag}{style}>{escape(str(cell))}</{tag}>" for cell in cells)
    return f"<tr>{inner}</tr>"


def of_tensor(title: str, tensor: TensorBase) -> str:
    """A tensor: its type, shape and values."""
    array = tensor.as_cpu()._array
    rows = [
        ("shape", array.shape),
        ("dtype", tensor.dtype.name),
        ("layout", tensor.layout() or "–"),
        ("bytes", f"{array.nbytes:,}"),
        ("values", values(array, tensor.dtype)),
    ]
    if tensor.source_info():
        rows.append(("source", tensor.source_info()))
    return table(title, ("", ""), rows)


def of_batch(title: str, batch: TensorListBase[Any]) -> str:
    """A batch: the shape, origin and values of its first and last samples."""
    rows: list[tuple[Any, ...]] = []
    for number in shown(batch.shape()):
        if number is None:
            rows.append(("…", "", "", ""))
            continue
        array = batch[number].as_cpu()._array
        text = values(array, batch.dtype)
        rows.append((number, array.shape, text, batch._source(number) or "–"))
    return table(title, ("sample", "shape", "values", "source"), rows)
