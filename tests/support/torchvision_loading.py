"""A data set for workers of loaders, which import it by its name."""

from __future__ import annotations

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
