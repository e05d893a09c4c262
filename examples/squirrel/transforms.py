"""The tutorial's transforms by hand, with PyTorch, as torchvision does them for tensors."""

from __future__ import annotations

import math

import torch
from torch.nn import functional


def center_crop(image: torch.Tensor, extent: int) -> torch.Tensor:
    """The middle of an image ``(C, H, W)``."""
    height, width = image.shape[-2:]
    top, left = round((height - extent) / 2), round((width - extent) / 2)
    return image[..., top : top + extent, left : left + extent]


def rotate(image: torch.Tensor, angle: float) -> torch.Tensor:
    """An image ``(C, H, W)`` rotated about its centre by `angle` degrees, to the nearest pixel."""
    turn = math.radians(angle)
    height, width = image.shape[-2:]
    ratio = height / width
    matrix = torch.tensor(
        [
            [math.cos(turn), -math.sin(turn) * ratio, 0.0],
            [math.sin(turn) / ratio, math.cos(turn), 0.0],
        ]
    )[None]
    grid = functional.affine_grid(matrix, [1, *image.shape[-3:]], align_corners=False)
    return functional.grid_sample(image[None], grid, mode="nearest", align_corners=False)[0]


def transformed(image: torch.Tensor) -> torch.Tensor:
    """What the tutorial does to an image."""
    return rotate(center_crop(image, 200), 30.0)
