"""Samples assumed before the first one of a signal."""

from __future__ import annotations

from enum import IntEnum


class Border(IntEnum):
    """The number before the first: that one itself, 0, or the second (0 where there is none)."""

    CLAMP = 0
    ZERO = 1
    REFLECT = 2
