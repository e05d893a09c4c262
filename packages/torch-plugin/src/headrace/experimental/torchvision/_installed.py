"""The one place that imports torchvision, which declares the transforms."""

from __future__ import annotations

import importlib
import importlib.metadata
from types import ModuleType

from headrace.errors import MissingDependencyError

_OLDEST = (0, 21)
"""The first version with `make_params` and `transform`."""


def torchvision_module(name: str) -> ModuleType:
    """A module of torchvision, with a reason and a way out if it cannot be imported."""
    try:
        found = importlib.import_module(f"torchvision.{name}")
        version = importlib.import_module("torchvision").__version__
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != "torchvision":
            raise
        raise MissingDependencyError(
            "`headrace.experimental.torchvision` needs torchvision, which declares the transforms, "
            "and it is not installed. Run `pip install 'headrace-torch[torchvision]'`.",
            name="torchvision",
        ) from error
    except (ImportError, RuntimeError, OSError) as error:
        # A wheel for another build of PyTorch: "operator torchvision::nms does not exist".
        installed = importlib.metadata.version("torch")
        raise MissingDependencyError(
            "`headrace.experimental.torchvision` needs torchvision, which is installed and cannot "
            f"be imported: {error}. It has to be made for the installed PyTorch "
            f"({installed}): install both from one index, as https://pytorch.org says.",
            name="torchvision",
        ) from error
    numbers = tuple(int(part) for part in version.split(".")[:2] if part.isdigit())
    if numbers < _OLDEST:
        raise MissingDependencyError(
            f"`headrace.experimental.torchvision` needs torchvision {_OLDEST[0]}.{_OLDEST[1]} or "
            f"later, and {version} is installed. Run `pip install --upgrade torchvision`.",
            name="torchvision",
        )
    return found


def check_torchvision() -> None:
    """Raise an error with a reason and a way out if torchvision cannot be used."""
    torchvision_module("tv_tensors")
