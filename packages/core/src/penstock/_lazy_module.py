"""Modules that are imported when they are first used.

An ``import`` statement in a function costs half a microsecond each time, which counts where
operators of a GPU are called for every batch. An attribute of a lazy module costs less. For type
checkers, write as well::

    if TYPE_CHECKING:
        from penstock.kernels.gpu import windows
    else:
        windows = lazy_module("penstock.kernels.gpu.windows")
"""

from __future__ import annotations

import importlib
from typing import Any

from penstock._forking import no_fork


class _LazyModule:
    """Imports the module when an attribute is first read, and keeps the attribute."""

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __getattr__(self, attribute: str) -> Any:
        with no_fork:
            module = importlib.import_module(self.__name__)
        found = getattr(module, attribute)
        setattr(self, attribute, found)  # the next access is an ordinary attribute
        return found


def lazy_module(name: str) -> Any:
    """Stand in for the module `name`; use its functions and classes, not its variables."""
    return _LazyModule(name)
