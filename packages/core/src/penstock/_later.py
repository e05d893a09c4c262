"""Modules that are imported when they are first used.

An ``import`` in a function costs half a microsecond each time, which counts where operators of a
GPU are called for every batch. `later` costs an attribute. For whoever checks types, say as well::

    if TYPE_CHECKING:
        from penstock.kernels.gpu import windows
    else:
        windows = later("penstock.kernels.gpu.windows")
"""

from __future__ import annotations

import importlib
from typing import Any

from penstock._forking import no_fork


class _Later:
    """Takes over what is asked of it from the module, when it is asked for the first time."""

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __getattr__(self, attribute: str) -> Any:
        with no_fork:
            module = importlib.import_module(self.__name__)
        found = getattr(module, attribute)
        setattr(self, attribute, found)  # it is found without asking from now on
        return found


def later(name: str) -> Any:
    """What stands for the module `name`, of which functions and classes are used, not variables."""
    return _Later(name)
