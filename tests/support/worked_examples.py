"""The worked examples of docs/operators.md, exactly as they stand there."""

from __future__ import annotations

import json
import re
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from headrace.operators.support import registry

PAGE = Path(__file__).parents[2] / "docs" / "operators.md"
OPERATORS = ("subsample", "readers.records", "decoders.pfm")
MADE = (
    ("headrace.fn", "subsample"),
    ("headrace.fn.readers", "records"),
    ("headrace.fn.decoders", "pfm"),
    ("headrace.experimental.dynamic", "subsample"),
    ("headrace.experimental.dynamic.readers", "Records"),
)
"""What is made of them when it is asked for, and kept."""
EXAMPLES = ("A pixel operator", "A reader", "A decoder")


def program(title: str) -> str:
    """The program below the heading that begins with `title`."""
    section = PAGE.read_text().split(f"\n### {title}")[1]
    found = re.search(r"```python\n(.*?)```", section, flags=re.DOTALL)
    assert found is not None
    return found[1]


@contextmanager
def declared() -> Iterator[dict[str, Any]]:
    """What stands in a module with all three, and with the pipeline that uses them.

    At the end there are no such operators any more, for tests of what there is.
    """
    try:
        yield _run()
    finally:
        for name in OPERATORS:
            registry._schemas.pop(name, None)
        for module, name in MADE:
            if module in sys.modules:
                vars(sys.modules[module]).pop(name, None)


def _run() -> dict[str, Any]:
    names: dict[str, Any] = {"__name__": "worked_examples"}
    last = PAGE.read_text().split("\nAll together:\n\n```python\n")[1].partition("```")[0]
    for text in (*map(program, EXAMPLES), last):
        exec(compile(text, str(PAGE), "exec"), names)
    return names


def pfm(pixels: np.ndarray, order: str = "<") -> bytes:
    """A portable float map of pixels ``(height, width, channels)``."""
    height, width, channels = pixels.shape
    head = f"P{'F' if channels == 3 else 'f'}\n{width} {height}\n{-1.0 if order == '<' else 1.0}\n"
    return head.encode() + pixels[::-1].astype(f"{order}f4").tobytes()


def write_records(path: Path, contents: list[bytes], labels: list[int]) -> None:
    """A file as `fn.readers.records` reads it, and its index."""
    index, begin = [], 0
    records = [zlib.compress(content) for content in contents]
    for record, label in zip(records, labels, strict=True):
        index.append([begin, len(record), label])
        begin += len(record)
    path.write_bytes(b"".join(records))
    Path(f"{path}.json").write_text(json.dumps(index))


def maps(count: int = 6) -> list[np.ndarray]:
    """Depth maps of different shapes, with values from 0 to 1."""
    random = np.random.default_rng(3)
    return [random.random((5 + k, 7 + 2 * k, 3 if k % 2 else 1), np.float32) for k in range(count)]
