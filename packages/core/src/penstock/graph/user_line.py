"""Which line of the user's program is calling into the library."""

from __future__ import annotations

import functools
import os
import sys


@functools.cache
def own_folders() -> tuple[str, ...]:
    """Where the library is: its core and its plugins, which may lie elsewhere."""
    folders = sys.modules["penstock"].__path__
    return tuple({os.path.join(f(path), "") for path in folders for f in (str, os.path.realpath)})


def stack_level() -> int:
    """The `stacklevel` with which a warning, given by the caller, points at the user's line."""
    frame, level = sys._getframe(1), 1
    while frame is not None and frame.f_code.co_filename.startswith(own_folders()):
        frame, level = frame.f_back, level + 1  # type: ignore[assignment]
    return level


def user_line() -> str:
    """``file:line in function`` of the innermost caller outside of the library."""
    frame = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if not code.co_filename.startswith(own_folders()):
            return f"{code.co_filename}:{frame.f_lineno} in {code.co_name}"
        frame = frame.f_back  # type: ignore[assignment]
    return "an unknown line"
