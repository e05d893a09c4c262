"""Graphs given as the text of one expression, so that a test's name shows what it tries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


def graph_of(text: str, *names: str) -> Callable[..., Any]:
    """The function of a library, `lib`, and edges called `names` that evaluates `text`."""
    code = compile(text, "<graph>", "eval")

    def graph(lib: Any, *edges: Any) -> Any:
        return eval(code, {"lib": lib, "np": np, **dict(zip(names, edges, strict=True))})

    return graph
