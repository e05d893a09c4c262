"""Printed form of an iterator: what it iterates over in a line, its outputs as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.pipeline.printing import output_texts
from headrace.tensors import _html

if TYPE_CHECKING:
    from headrace.plugin.base_iterator import _DaliBaseIterator


def iterator_line(iterator: _DaliBaseIterator) -> str:
    """``DALIGenericIterator(batch_size=64, ...)``, on one line."""
    parts = [f"batch_size={iterator.batch_size}", f"pipelines={len(iterator._pipes)}"]
    if iterator.output_map is not None:
        parts.append(f"outputs={list(iterator.output_map)}")
    if iterator._reader_name is not None:
        parts.append(f"reader_name={iterator._reader_name!r}")
    given, total = iterator._given, iterator._length()
    parts.append(f"batches={given} of {total}" if total else f"batches={given}")
    return f"{type(iterator).__name__}({', '.join(parts)})"


def iterator_html(iterator: _DaliBaseIterator) -> str:
    """The line, and the outputs of each pipeline, for notebooks."""
    rows = []
    for number, pipeline in enumerate(iterator._pipes):
        texts = output_texts(pipeline)
        names = iterator.output_map or [str(k) for k in range(len(texts))]
        rows += [(number, name, text) for name, text in zip(names, texts, strict=False)]
    return _html.table(iterator_line(iterator), ("pipeline", "output", "samples"), rows)
