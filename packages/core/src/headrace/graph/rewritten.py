"""Tells functions that were rewritten for conditions on data from those that were not."""

from __future__ import annotations

from typing import Any

HELPER = "_headrace"
"""The name of `headrace.autograph.runtime` in rewritten code."""


def is_rewritten(function: Any) -> bool:
    """Return True if `function` was rewritten, or is defined in a function that was."""
    code = getattr(function, "__code__", None)
    return code is not None and HELPER in code.co_freevars
