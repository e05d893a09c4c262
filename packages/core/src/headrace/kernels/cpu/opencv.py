"""The one place that imports OpenCV: on first use, and held to one thread a call."""

from __future__ import annotations

from functools import cache
from types import ModuleType

from headrace._forking import no_fork


@cache
def cv2() -> ModuleType:
    """The `cv2` module.

    Samples are already spread over worker threads; OpenCV's own threads would only compete with
    them, so they are switched off, and so is OpenCL.
    """
    with no_fork:
        import cv2

    cv2.setNumThreads(1)
    cv2.ocl.setUseOpenCL(False)
    return cv2
