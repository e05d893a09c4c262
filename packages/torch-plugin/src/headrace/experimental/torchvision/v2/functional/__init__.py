"""The functions of ``torchvision.transforms.v2.functional``, with their signatures."""

from headrace.experimental.torchvision._functions import functions

globals().update(functions())
__all__ = sorted(functions())


def __dir__() -> list[str]:
    return [*__all__]
