"""Operators as classes: arguments may be given to the constructor or to the call.

Classes are made from the operators' declarations, one for each function in `penstock.fn`.
"""

from __future__ import annotations

from typing import Any

from penstock.api import classes
from penstock.api.classes import Compose as Compose
from penstock.tracebacks import public

__path__: list[str] = []  # sub-modules are made on demand, not found on disk


@public
def __getattr__(name: str) -> Any:
    return classes.lookup(__name__, name)


def __dir__() -> list[str]:
    return classes.names(__name__)


classes.install(__name__)
