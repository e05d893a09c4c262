"""Alias of `headrace.backend` under the name of DALI's compiled module, which programs import too.

Its parts that run DALI's own engine (`Pipeline`, `OpSpec`, ...) have no counterpart.
"""

from __future__ import annotations

import sys
from typing import Any

from headrace import backend, tfrecord, types

__all__ = [*sorted({*backend.__all__, "tfrecord"} - {"check_cuda_runtime"})]
__path__: list[str] = []  # its modules are the library's, under a second name
sys.modules |= {f"{__name__}.tfrecord": tfrecord, f"{__name__}.types": types}


def __getattr__(name: str) -> Any:
    if name == "tfrecord":
        return tfrecord
    if name in __all__:
        return getattr(backend, name)
    raise AttributeError(
        f"module {__name__!r} has no attribute {name!r}. It has the tensors, batches and functions "
        "of `headrace.backend`; DALI's own engine, the rest of its module, has no counterpart."
    )


def __dir__() -> list[str]:
    return [*__all__]
