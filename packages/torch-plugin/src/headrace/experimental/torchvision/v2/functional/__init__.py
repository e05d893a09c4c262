"""The functions of ``torchvision.transforms.v2.functional``, with their signatures."""

from headrace.experimental.torchvision._functions import OURS

globals().update(vars(OURS))
__all__ = sorted(vars(OURS))


def __dir__() -> list[str]:
    return [*__all__]
