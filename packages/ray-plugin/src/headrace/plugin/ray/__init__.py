"""Pipelines whose work is done by the processors of a Ray cluster.

`RayIterator` needs headrace-torch, and `RayJaxIterator` headrace-jax; `distribute` puts any
pipeline on a cluster, for whatever takes pipelines. `fn.readers.ray` reads a Ray `Dataset`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from headrace.plugin.base_iterator import LastBatchPolicy
from headrace.plugin.ray.data import DatasetSource, PipelineMap
from headrace.plugin.ray.distribution import distribute
from headrace.plugin.ray.reader import RayReader as _RayReader  # noqa: F401 - declares it
from headrace.plugin.ray.report import Cut, CutEdge, WorkerReport

if TYPE_CHECKING:
    from headrace.plugin.ray.jax_iterator import RayJaxIterator
    from headrace.plugin.ray.torch_iterator import RayIterator

__all__ = [
    "Cut",
    "CutEdge",
    "DatasetSource",
    "LastBatchPolicy",
    "PipelineMap",
    "RayIterator",
    "RayJaxIterator",
    "WorkerReport",
    "distribute",
]

_IN = {"RayIterator": "torch_iterator", "RayJaxIterator": "jax_iterator"}
"""Modules of names that need a framework, which is imported with the first use."""


def __getattr__(name: str) -> Any:
    module = _IN.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(importlib.import_module(f"{__name__}.{module}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return [*__all__]
