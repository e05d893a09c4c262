"""The former place of `NumbaFunction`."""

from __future__ import annotations

from headrace.plugin.numba import NumbaFunction

__all__ = ["NumbaFunction"]


def __dir__() -> list[str]:
    return [*__all__]
