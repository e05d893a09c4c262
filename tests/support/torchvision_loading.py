"""A data set for workers of loaders, which import it by its name."""

from __future__ import annotations

import multiprocessing.context
from typing import Any

import PIL.Image
import torch

from tests.support.torchvision_inputs import pixels


def recipe(library: Any) -> Any:
    """A composition of a library's transforms."""
    return library.Compose(
        [
            library.RandomResizedCrop(16),
            library.RandomHorizontalFlip(),
            library.ToImage(),
            library.ToDtype(torch.float32, scale=True),
            library.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]),
        ]
    )


class Photographs(torch.utils.data.Dataset):  # type: ignore[type-arg]
    """Twelve images of several sizes, and their numbers."""

    def __init__(self, transform: Any) -> None:
        self.transform = transform

    def __len__(self) -> int:
        return 12

    def __getitem__(self, number: int) -> tuple[Any, int]:
        image = PIL.Image.fromarray(pixels(seed=number, height=30 + number, width=50 - number))
        return self.transform(image, number)  # type: ignore[no-any-return]


def alone(image: Any, number: int) -> tuple[Any, int]:
    """Take the place of a transform."""
    return image, number


class Told(Photographs):
    """Photographs that expect to have been seen by `tell` in their worker."""

    mark = ""

    def __getitem__(self, number: int) -> tuple[Any, int]:
        info = torch.utils.data.get_worker_info()
        assert info is None or (self.mark == "told" and type(info.dataset) is Told)
        return super().__getitem__(number)


def tell(worker: int) -> None:
    """Leave a mark on the data set of a worker."""
    info: Any = torch.utils.data.get_worker_info()
    info.dataset.mark = "told"


class SpawnProcess(multiprocessing.context.SpawnProcess):
    """Imports this module, and thereby torchvision, before all else that it is sent."""


class SpawnContext(multiprocessing.context.SpawnContext):
    """Starts such processes."""

    Process = SpawnProcess


class ForkServerProcess(multiprocessing.context.ForkServerProcess):
    """Likewise."""


class ForkServerContext(multiprocessing.context.ForkServerContext):
    """Starts such processes."""

    Process = ForkServerProcess


CONTEXTS = {
    "fork": multiprocessing.get_context("fork"),
    "spawn": SpawnContext(),
    "forkserver": ForkServerContext(),
}
