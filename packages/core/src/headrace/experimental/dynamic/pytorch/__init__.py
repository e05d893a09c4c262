"""Dynamic mode in PyTorch programs: `nodes`, for ``torchdata.nodes``.

`Tensor.torch` and `Batch.torch` need no more than PyTorch.
"""

from __future__ import annotations

import importlib
from typing import Any

from headrace.errors import MissingDependencyError


def __getattr__(name: str) -> Any:
    if name != "nodes":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return importlib.import_module(f"{__name__}.nodes")
    except MissingDependencyError as error:
        raise AttributeError(str(error)) from error


def __dir__() -> list[str]:
    return ["nodes"]
