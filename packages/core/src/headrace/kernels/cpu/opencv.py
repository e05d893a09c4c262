"""The one place that imports OpenCV: on first use, and held to one thread a call."""

from __future__ import annotations

import importlib
import importlib.metadata
import warnings
from functools import cache
from types import ModuleType

from headrace._forking import no_fork
from headrace.errors import MissingDependencyError

OWN = "opencv-python-headless"
_OTHERS = ("opencv-python", "opencv-contrib-python", "opencv-contrib-python-headless")
_USED = ("setNumThreads", "ocl", "imdecode", "warpAffine")
"""Attributes that a complete `cv2` has."""


@cache
def cv2() -> ModuleType:
    """The `cv2` module.

    Samples are already spread over worker threads; OpenCV's own threads would only compete with
    them, so they are switched off, and so is OpenCL.
    """
    try:
        with no_fork:
            found = importlib.import_module("cv2")
    except (ImportError, AttributeError) as error:  # the latter where its parts do not fit together
        raise _broken(str(error)) from error
    for name in _USED:
        if not hasattr(found, name):
            raise _broken(f"`cv2` has no `{name}`")
    version = str(getattr(found, "__version__", ""))
    if version.partition(".")[0] in ("3", "4"):
        warnings.warn(
            f"`cv2` is version {version}, and Headrace needs 5: warped pixels differ. {way_out()}",
            UserWarning,
            stacklevel=2,
        )
    found.setNumThreads(1)
    found.ocl.setUseOpenCL(False)
    return found


def _broken(reason: str) -> MissingDependencyError:
    return MissingDependencyError(
        f"OpenCV, which works on images, cannot be used: {reason}. {way_out()}", name="cv2"
    )


def others() -> dict[str, str]:
    """Versions of the installed distributions that bring the very files of Headrace's OpenCV."""
    found = {}
    for name in _OTHERS:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def way_out() -> str:
    """Advice for an OpenCV that is missing, broken or old."""
    names = list(others())
    install = f"pip install --force-reinstall --no-deps '{OWN}>=5'"
    if not names:
        return f"Run `{install}`."
    listed = " and ".join(f"{name} {version}" for name, version in others().items())
    return (
        f"{listed} is installed, too, and has the same files: each overwrites those of the other, "
        "and takes them along when it is uninstalled. Run "
        f"`pip uninstall {' '.join(names)}`, then `{install}`: it lacks windows, and the extra "
        "modules of opencv-contrib-python."
    )
