"""The two libraries under the names that tables use."""

from __future__ import annotations

import importlib
from typing import Any

_ROOTS = {"DALI": "nvidia.dali", "Headrace": "headrace"}


def library(name: str) -> Any:
    """The library of that name, with the modules that the graphs use."""
    root = _ROOTS[name]
    for module in ("fn", "types", "math"):
        importlib.import_module(f"{root}.{module}")
    return importlib.import_module(root)


def pytorch_plugin(name: str) -> Any:
    """The library's module of iterators for PyTorch."""
    return importlib.import_module(f"{_ROOTS[name]}.plugin.pytorch")
