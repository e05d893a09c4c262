"""Sizes of batches as users give them."""

from __future__ import annotations

from typing import Any

from headrace.errors import ArgumentTypeError, MisusedArgumentError

_MOST = 2**31 - 1
"""Largest size of a batch: DALI's."""


def checked_size(size: Any, name: str = "batch_size", least: int = 1) -> int:
    """`size` as an integer of at least `least`, and not absurdly large."""
    if isinstance(size, bool) or not hasattr(size, "__index__"):
        raise ArgumentTypeError(f"`{name}` is an integer, got {size!r}.")
    if size < least:
        raise MisusedArgumentError(f"`{name}` is {size}; it must be at least {least}.")
    if size > _MOST:
        raise MisusedArgumentError(f"`{name}` is {size}; it must be at most {_MOST}.")
    return int(size)
