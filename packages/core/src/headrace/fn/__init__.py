"""Operators as functions: each takes `DataNode` edges and returns them.

Functions are made from the operators' declarations; ``headrace.fn.decoders`` and the like hold
those whose name is dotted. Operators that a user declares appear here as well. Programs know
`_to_snake_case` by this name.
"""

from __future__ import annotations

import sys
from typing import Any

from headrace.api import conditional as _branches
from headrace.api import functions
from headrace.operators.support.signature import snake_case as _to_snake_case  # noqa: F401
from headrace.tracebacks import public as _public

__path__: list[str] = []  # sub-modules are made on demand, not found on disk


@_public
def __getattr__(name: str) -> Any:
    return functions.lookup(__name__, name)


def __dir__() -> list[str]:
    return functions.names(__name__)


functions.install(__name__)
_conditional = sys.modules[f"{__name__}._conditional"]
_conditional.split, _conditional.merge = _branches.split, _branches.merge  # type: ignore[attr-defined]
