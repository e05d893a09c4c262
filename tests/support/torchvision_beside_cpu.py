"""Import torchvision beside a build of torch without CUDA.

Its wheel's compiled part then does not load, and its Python part asks for the names that were to
be defined there. No transform calls them.
"""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

_LIBRARIES: list[Any] = []
"""Definitions end with the library that made them."""


def import_torchvision() -> ModuleType:
    """Import torchvision, having defined names of operators that it lacks."""
    spec = importlib.util.find_spec("torchvision")
    if spec is None or spec.origin is None:
        raise ImportError("torchvision is not installed")
    if not _LIBRARIES and torch.version.cuda is None:
        text = Path(spec.origin).with_name("_meta_registrations.py").read_text()
        library = torch.library.Library("torchvision", "DEF")
        for name in sorted(set(re.findall(r'"torchvision::(\w+)"', text))):
            library.define(f"{name}(Tensor x) -> Tensor")
        _LIBRARIES.append(library)
    return importlib.import_module("torchvision")
