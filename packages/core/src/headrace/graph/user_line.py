"""Line of the user's program that calls into the library."""

from __future__ import annotations

import contextlib
import sys
from types import FrameType

from headrace.tracebacks import own_folders
from headrace.tracebacks import stack_level as stack_level

MOST_FRAMES = 12
_INSTALLED = "-packages"
"""Common suffix of the folders that packages are installed in: ``site-packages`` and so on."""


def leaves_program(file: str, inner: str) -> bool:
    """Return True if a call from `file` of code in the file `inner` is not one of the user's."""
    installed = _INSTALLED in file and inner != "" and _INSTALLED not in inner
    return installed or file.startswith(own_folders())


def user_line() -> str:
    """``file:line in function`` of the innermost caller outside of the library.

    Where that is an installed package, such as NumPy, it is who called that, if it is none.
    """
    stack = user_stack()
    return next((line for line in stack if _INSTALLED not in line), (*stack, "an unknown line")[0])


def user_stack() -> tuple[str, ...]:
    """The user's calls that led here, innermost first, each as ``file:line in function``.

    They end where a pipeline's definition begins, at the top of a script or of a notebook's cell,
    or where an installed package, such as a test runner, calls the user's code.

    There are `MOST_FRAMES` of them at most.
    """
    own = (*own_folders(), contextlib.__file__)  # by which the library enters its own contexts
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(own):
        frame = frame.f_back
    found: list[str] = []
    inner = ""
    while frame is not None and len(found) < MOST_FRAMES:
        code = frame.f_code
        if leaves_program(code.co_filename, inner):
            break
        inner = code.co_filename
        found.append(f"{code.co_filename}:{frame.f_lineno} in {code.co_name}")
        if code.co_name == "<module>":
            break
        frame = frame.f_back
    return tuple(found)
