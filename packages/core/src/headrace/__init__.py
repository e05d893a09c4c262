"""Headrace: data pipelines with the interface of NVIDIA DALI, on machines with and without a GPU.

Every public module path is DALI's: ``headrace.fn``, ``headrace.types``, ``headrace.pipeline``, ...
Importing the package imports none of them: each is loaded the first time it is named.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
from typing import TYPE_CHECKING, Any

from headrace._missing import MissingModules, alike
from headrace._version import __version__ as __version__

if TYPE_CHECKING:
    from headrace import backend as backend
    from headrace import backend_impl as backend_impl
    from headrace import data_node as data_node
    from headrace import errors as errors
    from headrace import fn as fn
    from headrace import math as math
    from headrace import ops as ops
    from headrace import pickling as pickling
    from headrace import pipeline as pipeline
    from headrace import plugin as plugin
    from headrace import plugin_manager as plugin_manager
    from headrace import python_function_plugin as python_function_plugin
    from headrace import tensors as tensors
    from headrace import tfrecord as tfrecord
    from headrace import types as types
    from headrace.data_node import newaxis as newaxis
    from headrace.display import contact_sheet as contact_sheet
    from headrace.display import show as show
    from headrace.page_locked import empty_pinned as empty_pinned
    from headrace.pipeline import OperatorConcurrency as OperatorConcurrency
    from headrace.pipeline import Pipeline as Pipeline
    from headrace.pipeline import StreamPolicy as StreamPolicy
    from headrace.pipeline import pipeline_def as pipeline_def
    from headrace.profiling import profile as profile
    from headrace.profiling import stragglers as stragglers

# The plugins are distributions of their own that put `headrace/plugin/<name>` elsewhere on the
# path and ship no `__init__` above it.
__path__ = pkgutil.extend_path(__path__, __name__)

# Asked last: what is installed is found before.
sys.meta_path.append(MissingModules)

_HOME_OF_NAME = {
    "OperatorConcurrency": "headrace.pipeline",
    "Pipeline": "headrace.pipeline",
    "StreamPolicy": "headrace.pipeline",
    "contact_sheet": "headrace.display",
    "empty_pinned": "headrace.page_locked",
    "newaxis": "headrace.data_node",
    "pipeline_def": "headrace.pipeline",
    "profile": "headrace.profiling",
    "show": "headrace.display",
    "stragglers": "headrace.profiling",
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
        "pickling",
        "pipeline",
        "plugin",
        "plugin_manager",
        "python_function_plugin",
        "tensors",
        "tfrecord",
        "types",
    }
)
__git_sha__ = ""
"""The commit that DALI was built from; not known of Headrace, whose wheels are made of sources."""

_PUBLIC = sorted({"__cuda_version__", "__git_sha__", "__version__", *_HOME_OF_NAME, *_MODULES})


def __getattr__(name: str) -> Any:
    value: Any
    if name in _HOME_OF_NAME:
        value = getattr(importlib.import_module(_HOME_OF_NAME[name]), name)
    elif name == "__cuda_version__":
        value = importlib.import_module("headrace.backend").__cuda_version__
    elif name in _MODULES:
        value = importlib.import_module(f"{__name__}.{name}")
    else:
        from headrace.to_come import missing_module

        missing = missing_module(f"{__name__}.{name}")
        text = f"module {__name__!r} has no attribute {name!r}.{alike(name, __name__)}"
        raise AttributeError(text if missing is None else str(missing))
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(_PUBLIC)
