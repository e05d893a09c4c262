"""Images as flat arrays: planes of colours for tensors, numbers of four bytes for PIL's RGB."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from headrace.experimental.torchvision._pixels import new_pil_image, pil_pixels
from headrace.kernels.cpu.transpose import transpose_into

RGB = 3


def planes_of(image: torch.Tensor) -> np.ndarray:
    """All images of a tensor ``(N, C, H * W)``, contiguous."""
    *_, channels, height, width = image.shape
    if not image.is_contiguous():
        images = image.reshape(-1, channels, height, width)
        source = images.numpy()
        made = np.empty(source.shape, source.dtype)
        for one, out in zip(source, made, strict=True):
            transpose_into(one.transpose(1, 2, 0), (2, 0, 1), out)
        return made.reshape(-1, channels, height * width)
    return image.numpy().reshape(-1, channels, height * width)


def new_planes(image: torch.Tensor, channels: int | None = None) -> tuple[torch.Tensor, np.ndarray]:
    """A contiguous tensor like `image`, and its memory ``(N, C, H * W)``."""
    *lead, count, height, width = image.shape
    count = channels or count
    made = torch.empty((*lead, count, height, width), dtype=image.dtype)
    return made, made.numpy().reshape(-1, count, height * width)


def flat_pair(image: torch.Tensor) -> tuple[np.ndarray, torch.Tensor, np.ndarray]:
    """Memory of a tensor, another like it, and its memory, flat and in the same order."""
    moved = image.movedim(-3, -1)
    if not image.is_contiguous() and moved.is_contiguous():
        made = torch.empty(moved.shape, dtype=image.dtype)
        return moved.numpy().reshape(-1), made.movedim(-1, -3), made.numpy().reshape(-1)
    image = image.contiguous()
    made = torch.empty(image.shape, dtype=image.dtype)
    return image.numpy().reshape(-1), made, made.numpy().reshape(-1)


def pil_pair(image: Any, mode: str | None = None) -> tuple[np.ndarray, Any, np.ndarray] | None:
    """Pixels of a PIL image "L" or "RGB", a new image of its size, and its pixels."""
    if image.mode not in ("L", "RGB"):
        return None
    source = pil_pixels(image)
    made = new_pil_image(mode or image.mode, *image.size) if source is not None else None
    if source is None or made is None or source.shape[2] not in (1, 4):
        return None
    return source, *made


def numbers(pixels: np.ndarray) -> np.ndarray:
    """Pixels of four bytes as numbers, flat."""
    return pixels.reshape(-1).view(np.uint32)


def each(*arrays: np.ndarray) -> Iterator[tuple[np.ndarray, ...]]:
    """Go through several arrays at once."""
    return zip(*arrays, strict=True)
