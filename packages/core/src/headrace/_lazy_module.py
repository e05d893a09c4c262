"""Modules that are imported when they are first used.

What operators call is imported neither with them (a CPU alone needs no kernel of a GPU, and
compiled loops take long to import) nor by a statement in a function, which costs half a microsecond
each time: too much where operators of a GPU are called for every batch. An attribute of a lazy
module costs less. The packages of kernels give lazy modules to code such as ::

    from headrace.kernels.gpu import windows

For a single module elsewhere, type checkers want it told twice::

    if TYPE_CHECKING:
        from scipy import fft
    else:
        fft = lazy_module("scipy.fft")
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from headrace._forking import no_fork


class _LazyModule(ModuleType):
    """Imports the module when an attribute is first read, and keeps the attribute."""

    def __getattr__(self, attribute: str) -> Any:
        found = getattr(self._imported(), attribute)
        self.__dict__[attribute] = found  # the next access is an ordinary attribute
        return found

    def __setattr__(self, attribute: str, value: Any) -> None:
        """Set an attribute of the module itself, as tests do."""
        setattr(self._imported(), attribute, value)
        self.__dict__.pop(attribute, None)

    def _imported(self) -> ModuleType:
        with no_fork:
            return importlib.import_module(self.__name__)


@cache
def lazy_module(name: str) -> Any:
    """Stand in for the module `name`; use its functions and classes, not its variables."""
    return _LazyModule(name)


def lazy_submodules(package: str) -> Callable[[str], Any]:
    """Return the function ``__getattr__`` of a package that hands out its modules as lazy ones."""

    def attribute(name: str) -> Any:
        if name.startswith("__") or find_spec(f"{package}.{name}") is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return lazy_module(f"{package}.{name}")

    return attribute
