"""The transforms of ``torchvision.transforms.v2``, with their signatures."""

from headrace.experimental.torchvision._installed import check_torchvision

check_torchvision()  # before anything that takes long to import

from headrace.experimental.torchvision._classes import transforms  # noqa: E402
from headrace.experimental.torchvision._compose import Compose  # noqa: E402
from headrace.experimental.torchvision._loader import to_loader  # noqa: E402
from headrace.experimental.torchvision.v2 import functional as functional  # noqa: E402

_FOUND = {**transforms(), "Compose": Compose, "to_loader": to_loader}
globals().update(_FOUND)
__all__ = sorted([*_FOUND, "functional"])


def __dir__() -> list[str]:
    return [*__all__]
