"""Places at which a Ctrl-C cannot be tried, in tests that raise one at every call."""

from __future__ import annotations

import inspect
from types import FrameType


def is_unheard(frame: FrameType | None) -> bool:
    """Return True if Python ignores errors there, or the work is undone already."""
    assert frame is not None
    if frame.f_code.co_flags & inspect.CO_GENERATOR:
        return True
    if frame.f_code.co_name == "__init__" and hasattr(frame.f_locals["self"], "__del__"):
        return True
    while frame is not None:
        if frame.f_code.co_name in ("__del__", "_give_back"):
            return True
        frame = frame.f_back
    return False
