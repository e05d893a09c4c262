"""The transforms of ``torchvision.transforms.v2``, with their signatures."""

from headrace.experimental.torchvision._classes import transforms
from headrace.experimental.torchvision._compose import Compose
from headrace.experimental.torchvision.v2 import functional as functional

_FOUND = {**transforms(), "Compose": Compose}
globals().update(_FOUND)
__all__ = sorted([*_FOUND, "functional"])


def __dir__() -> list[str]:
    return [*__all__]
