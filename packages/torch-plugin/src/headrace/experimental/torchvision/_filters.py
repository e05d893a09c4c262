"""Blurring and sharpening."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import torch

from headrace.experimental.torchvision._dispatch import kernel
from headrace.experimental.torchvision._installed import torchvision_module
from headrace.experimental.torchvision._pixels import is_plain
from headrace.experimental.torchvision._planes import RGB, flat_pair, pil_pair
from headrace.kernels.cpu import photometric
from headrace.kernels.cpu.opencv import cv2

_gaussian = torchvision_module("transforms.v2.functional._misc")._get_gaussian_kernel1d
_LEAST = 3


@lru_cache(maxsize=1024)
def _window(size: int, sigma: float) -> np.ndarray:
    window: np.ndarray = _gaussian(size, sigma, torch.float32, torch.device("cpu")).numpy()
    return window


def _windows(kernel_size: Any, sigma: Any) -> tuple[np.ndarray, np.ndarray] | None:
    """Windows of rows and columns; none for arguments that torchvision refuses."""
    sizes = [kernel_size] * 2 if isinstance(kernel_size, int) else [*kernel_size]
    if sigma is None:
        sigmas = [size * 0.15 + 0.35 for size in sizes]
    else:
        sigmas = [sigma] if isinstance(sigma, int | float) else [*sigma]
        sigmas = sigmas * 2 if len(sigmas) == 1 else sigmas
    if len(sizes) != 2 or len(sigmas) != 2 or min(sigmas) <= 0:
        return None
    if any(size % 2 == 0 or size < 0 for size in sizes):
        return None
    across, down = (_window(int(s), float(d)) for s, d in zip(sizes, sigmas, strict=True))
    return across, down


def _layers(source: np.ndarray, height: int, width: int, channels: int) -> np.ndarray:
    return source.reshape(-1, height, width, channels)


def _blur(source: np.ndarray, out: np.ndarray, windows: tuple[np.ndarray, np.ndarray]) -> None:
    library = cv2()
    across, down = windows
    for layer, target in zip(source, out, strict=True):
        made = library.sepFilter2D(layer, -1, across, down, borderType=library.BORDER_REFLECT_101)
        target[...] = made.reshape(target.shape)


@kernel("gaussian_blur", "tensor")
def gaussian_blur(image: torch.Tensor, kernel_size: Any, sigma: Any = None) -> Any:
    """Blur images; beyond the border they are reflected."""
    windows = _windows(kernel_size, sigma)
    if windows is None or not is_plain(image, torch.uint8, torch.float32):
        return NotImplemented
    channels, height, width = image.shape[-3:]
    if windows[0].size // 2 >= width or windows[1].size // 2 >= height:
        return NotImplemented
    source, made, out = flat_pair(image)
    depth = 1 if made.is_contiguous() else channels
    if depth > 4:
        return NotImplemented
    shape = (height, width, depth)
    _blur(_layers(source, *shape), _layers(out, *shape), windows)
    return made


@kernel("gaussian_blur", "pil")
def gaussian_blur_pil(image: Any, kernel_size: Any, sigma: Any = None) -> Any:
    """Blur a PIL image; beyond the border it is reflected."""
    windows = _windows(kernel_size, sigma)
    if windows is None or windows[0].size // 2 >= image.width:
        return NotImplemented
    pair = pil_pair(image) if windows[1].size // 2 < image.height else None
    if pair is None:
        return NotImplemented
    source, made, out = pair
    _blur(source[None], out[None], windows)
    return made


@kernel("adjust_sharpness", "tensor")
def adjust_sharpness(image: torch.Tensor, sharpness_factor: float) -> Any:
    """Mix images with smoothed ones."""
    if not is_plain(image, torch.uint8) or not sharpness_factor >= 0:
        return NotImplemented
    channels, height, width = image.shape[-3:]
    if channels not in (1, RGB) or height < _LEAST or width < _LEAST:
        return NotImplemented
    source, made, out = flat_pair(image)
    step = 1 if made.is_contiguous() else channels
    shape = (-1, height, width * step)
    for layer, target in zip(source.reshape(shape), out.reshape(shape), strict=True):
        photometric.sharpen_rows(layer, target, step, sharpness_factor)
    return made


@kernel("adjust_sharpness", "pil")
def adjust_sharpness_pil(image: Any, sharpness_factor: float) -> Any:
    """Mix a PIL image with a smoothed one."""
    pair = pil_pair(image) if min(image.size) >= _LEAST else None
    if pair is None:
        return NotImplemented
    source, made, out = pair
    height, width, step = source.shape
    shape = (height, width * step)
    photometric.sharpen_rows(source.reshape(shape), out.reshape(shape), step, sharpness_factor)
    return made
