"""Penstock: data pipelines with the interface of NVIDIA DALI, on machines with and without a GPU.

Every public module path is DALI's: ``penstock.fn``, ``penstock.types``, ``penstock.pipeline``, ...
Importing the package imports none of them: each is loaded the first time it is named.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
from typing import TYPE_CHECKING, Any

from penstock._missing import MissingModules
from penstock._version import __version__ as __version__

if TYPE_CHECKING:
    from penstock import backend as backend
    from penstock import backend_impl as backend_impl
    from penstock import data_node as data_node
    from penstock import errors as errors
    from penstock import fn as fn
    from penstock import math as math
    from penstock import ops as ops
    from penstock import pipeline as pipeline
    from penstock import plugin as plugin
    from penstock import plugin_manager as plugin_manager
    from penstock import tensors as tensors
    from penstock import tfrecord as tfrecord
    from penstock import types as types
    from penstock.data_node import newaxis as newaxis
    from penstock.display import contact_sheet as contact_sheet
    from penstock.display import show as show
    from penstock.pipeline import OperatorConcurrency as OperatorConcurrency
    from penstock.pipeline import Pipeline as Pipeline
    from penstock.pipeline import StreamPolicy as StreamPolicy
    from penstock.pipeline import pipeline_def as pipeline_def
    from penstock.profiling import profile as profile

# The plugins are distributions of their own that put `penstock/plugin/<name>` elsewhere on the
# path and ship no `__init__` above it.
__path__ = pkgutil.extend_path(__path__, __name__)

# Asked last: what is installed is found before.
sys.meta_path.append(MissingModules)

_HOME_OF_NAME = {
    "OperatorConcurrency": "penstock.pipeline",
    "Pipeline": "penstock.pipeline",
    "StreamPolicy": "penstock.pipeline",
    "contact_sheet": "penstock.display",
    "newaxis": "penstock.data_node",
    "pipeline_def": "penstock.pipeline",
    "profile": "penstock.profiling",
    "show": "penstock.display",
}
_MODULES = frozenset(
    {
        "backend",
        "backend_impl",
        "data_node",
        "errors",
        "fn",
        "math",
        "ops",
        "pipeline",
        "plugin",
        "plugin_manager",
        "tensors",
        "tfrecord",
        "types",
    }
)
__git_sha__ = ""
"""The commit that DALI was built from; not known of Penstock, whose wheels are made of sources."""

_PUBLIC = sorted({"__cuda_version__", "__git_sha__", "__version__", *_HOME_OF_NAME, *_MODULES})


def __getattr__(name: str) -> Any:
    value: Any
    if name in _HOME_OF_NAME:
        value = getattr(importlib.import_module(_HOME_OF_NAME[name]), name)
    elif name == "__cuda_version__":
        value = importlib.import_module("penstock.backend").GetCudaVersion()
    elif name in _MODULES:
        value = importlib.import_module(f"{__name__}.{name}")
    else:
        from penstock.to_come import missing_module

        missing = missing_module(f"{__name__}.{name}")
        text = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(text if missing is None else str(missing))
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(_PUBLIC)
