"""The transforms of ``torchvision.transforms.v2``, with their signatures."""

from typing import TYPE_CHECKING, Any

from headrace.experimental.torchvision._installed import check_torchvision

check_torchvision()  # before anything that takes long to import

from headrace.experimental.torchvision._classes import transforms  # noqa: E402
from headrace.experimental.torchvision._compose import Compose as Compose  # noqa: E402
from headrace.experimental.torchvision._loader import to_loader as to_loader  # noqa: E402
from headrace.experimental.torchvision.v2 import functional as functional  # noqa: E402

if TYPE_CHECKING:
    # Names and signatures are torchvision's, which has no types of its own: checkers that do not
    # read its sources take any name.
    from torchvision.transforms.v2 import *  # noqa: F403

    def __getattr__(name: str) -> Any: ...


_FOUND = {**transforms(), "Compose": Compose, "to_loader": to_loader}
globals().update(_FOUND)
__all__ = sorted([*_FOUND, "functional"])


def __dir__() -> list[str]:
    return [*__all__]
