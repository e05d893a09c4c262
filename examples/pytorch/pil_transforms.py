"""The torchvision transforms that `before` uses, on Pillow: for where torchvision is not installed.

Names, arguments and meaning are torchvision's.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from PIL import Image


class Compose:
    """Apply one transform after the other."""

    def __init__(self, transforms: Sequence[Callable[[Any], Any]]) -> None:
        self.transforms = transforms

    def __call__(self, value: Any) -> Any:
        for transform in self.transforms:
            value = transform(value)
        return value


class RandomResizedCrop:
    """A random part of the image, resized to a square of `size` pixels."""

    def __init__(
        self,
        size: int,
        scale: tuple[float, float] = (0.08, 1.0),
        ratio: tuple[float, float] = (3 / 4, 4 / 3),
    ) -> None:
        self.size, self.scale, self.ratio = size, scale, ratio

    def __call__(self, image: Image.Image) -> Image.Image:
        width, height = image.size
        for _ in range(10):
            area = width * height * random.uniform(*self.scale)
            aspect = math.exp(random.uniform(math.log(self.ratio[0]), math.log(self.ratio[1])))
            w, h = round(math.sqrt(area * aspect)), round(math.sqrt(area / aspect))
            if 0 < w <= width and 0 < h <= height:
                break
        else:
            w = h = min(width, height)
        x, y = random.randint(0, width - w), random.randint(0, height - h)
        box = (x, y, x + w, y + h)
        return image.resize((self.size, self.size), Image.Resampling.BILINEAR, box=box)


class RandomHorizontalFlip:
    """Mirror every other image."""

    def __init__(self, p: float = 0.5) -> None:
        self.p = p

    def __call__(self, image: Image.Image) -> Image.Image:
        if random.random() < self.p:
            return image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
        return image


class ToTensor:
    """A float32 CHW tensor with values from 0 to 1."""

    def __call__(self, image: Image.Image) -> torch.Tensor:
        return torch.from_numpy(np.array(image)).permute(2, 0, 1).float() / 255


class Normalize:
    """Subtract a mean and divide by a standard deviation, for each channel."""

    def __init__(self, mean: Sequence[float], std: Sequence[float]) -> None:
        self.mean = torch.tensor(mean)[:, None, None]
        self.std = torch.tensor(std)[:, None, None]

    def __call__(self, tensor: torch.Tensor) -> torch.Tensor:
        return (tensor - self.mean) / self.std
