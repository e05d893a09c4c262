"""All libraries, by the names that tables use."""

from __future__ import annotations

import importlib
from typing import Any

_WHERE = {
    "Headrace": ("dali", "HEADRACE"),
    "DALI": ("dali", "DALI"),
    "torchvision": ("loader", "TORCHVISION"),
    "torchcodec": ("loader", "TORCHCODEC"),
    "AlbumentationsX": ("loader", "ALBUMENTATIONS"),
    "SPDL": ("spdl", "SPDL"),
    "Grain": ("grain", "GRAIN"),
    "FFCV": ("ffcv", "FFCV"),
}
NAMES = tuple(_WHERE)


def library(name: str) -> Any:
    """The `Library` of that name."""
    module, constant = _WHERE[name]
    return getattr(importlib.import_module(f"benchmarks.compare.peers.{module}"), constant)
