"""Operators that are made of others: functions of the graph, for every front end."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

from headrace.operators.support.operator import Operator

_COMMON = ("name", "device", "preserve", "bytes_per_sample_hint")


class Composite(Operator):
    """An operator without work of its own: calls of it are calls of others."""

    @classmethod
    def has_cpu(cls) -> bool:
        """True: those that it is made of run where their data are."""
        return True

    has_gpu = has_cpu

    @abstractmethod
    def compose(self, do: Callable[..., Any], *inputs: Any) -> Any:
        """Call others by ``do(name, *inputs, **arguments)``; return the output, or a list of them.

        Optional inputs that are not given are `None`. ``self.args`` has all arguments, constants
        converted and data as they were given.
        """

    def common(self) -> dict[str, Any]:
        """Arguments that all operators have, for the one that makes the main output."""
        known = vars(self.args)
        return {
            k: known.get(k) or None for k in ("name", "device", "preserve", "bytes_per_sample_hint")
        }


def without_none(arguments: dict[str, Any]) -> dict[str, Any]:
    """Those that are given."""
    return {name: value for name, value in arguments.items() if value is not None}
