"""Functions of torchvision's that call ours where they look a name up.

What they check, and the numbers they work out on the way, are then torchvision's own.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any


def rebound(function: Any, **names: Any) -> Callable[..., Any]:
    """A copy of a function whose module has other values for these names."""
    made = FunctionType(
        function.__code__,
        {**function.__globals__, **names},
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )
    made.__kwdefaults__ = function.__kwdefaults__
    return made
