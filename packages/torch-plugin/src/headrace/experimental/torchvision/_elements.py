"""Conversions of element types, normalisation, and flips."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from headrace.experimental.torchvision._dispatch import kernel
from headrace.experimental.torchvision._pixels import is_plain
from headrace.experimental.torchvision._planes import each, new_planes, pil_pair
from headrace.kernels.cpu import photometric
from headrace.kernels.cpu.opencv import cv2

_F = np.float32


@kernel("normalize", "tensor")
def normalize(image: torch.Tensor, mean: Any, std: Any, inplace: bool = False) -> Any:
    """``(value - mean) / std`` of each channel."""
    if inplace or not is_plain(image, torch.float32) or not image.is_contiguous():
        return NotImplemented
    if mean is None or std is None:
        return NotImplemented
    means, stds = np.asarray(mean, _F).reshape(-1), np.asarray(std, _F).reshape(-1)
    full = np.ones(image.shape[-3], _F)
    if {means.size, stds.size} - {1, full.size} or not stds.all():
        return NotImplemented
    made, out = new_planes(image)
    for one, target in each(image.numpy().reshape(out.shape), out):
        photometric.scale_planes(one, means * full, full / stds, target)
    return made


@kernel("to_dtype", "tensor")
def to_dtype(image: torch.Tensor, dtype: torch.dtype = torch.float32, scale: bool = False) -> Any:
    """Bytes as numbers from 0 to 1."""
    if image.dtype == dtype:
        return image
    wanted = scale and dtype == torch.float32
    if not wanted or not is_plain(image, torch.uint8) or not image.is_contiguous():
        return NotImplemented
    made = torch.empty(image.shape, dtype=torch.float32)
    flat, out = image.numpy().reshape(1, -1), made.numpy().reshape(1, -1)
    photometric.scale_planes(flat, np.zeros(1, _F), np.full(1, 1 / 255, _F), out)
    return made


@kernel("horizontal_flip", "pil")
def horizontal_flip_pil(image: Any) -> Any:
    """Turn columns around; Pillow is faster at rows."""
    pair = pil_pair(image)
    if pair is None:
        return NotImplemented
    source, made, out = pair
    cv2().flip(source, 1, out)
    return made
