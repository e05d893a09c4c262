"""Transforms with the interface of torchvision, on this engine's kernels.

`v2` has all that ``torchvision.transforms.v2`` has, and so has this module, where DALI keeps its
own. torchvision itself, which declares the transforms, is imported at the first use of a name.
"""

from __future__ import annotations

import importlib
from typing import Any


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = importlib.import_module(f"{__name__}.v2")
    return module if name == "v2" else getattr(module, name)


def __dir__() -> list[str]:
    return sorted([*importlib.import_module(f"{__name__}.v2").__all__, "v2"])
