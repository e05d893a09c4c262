"""Brightness, contrast, saturation, hue, greyness and levels."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import PIL.Image
import torch

from headrace.experimental.torchvision._dispatch import kernel
from headrace.experimental.torchvision._installed import torchvision_module
from headrace.experimental.torchvision._pixels import is_plain
from headrace.experimental.torchvision._planes import (
    RGB,
    each,
    flat_pair,
    new_planes,
    numbers,
    pil_pair,
    planes_of,
)
from headrace.kernels.cpu import photometric
from headrace.kernels.cpu.lookup import look_up

_theirs = torchvision_module("transforms.v2.functional")
_U8 = torch.uint8
_LEVELS = 256


def _is_rgb(image: torch.Tensor, *dtypes: torch.dtype) -> bool:
    return is_plain(image, *dtypes) and image.shape[-3] == RGB


def _blended(image: torch.Tensor, factor: float, offset: float) -> torch.Tensor:
    source, made, out = flat_pair(image)
    photometric.blend_levels(source, out, factor, offset)
    return made


def _blended_pil(image: Any, factor: float, offset: float | None = 0.0) -> Any:
    pair = pil_pair(image)
    if pair is None:
        return NotImplemented
    source, made, out = pair
    if offset is None:
        if source.shape[2] == 1:
            total = int(source.sum())
        else:
            total = photometric.grey_sum_of_pixels(numbers(source))
        offset = pil_contrast(total, source.shape[0] * source.shape[1], factor)
    photometric.blend_levels(source.reshape(-1), out.reshape(-1), factor, offset)
    return made


def pil_contrast(total: int, count: int, factor: float) -> float:
    """Offset of a contrast, of the sum of the grey."""
    return int(total / count + 0.5) * (1.0 - factor)


@kernel("adjust_brightness", "tensor")
def adjust_brightness(image: torch.Tensor, brightness_factor: float) -> Any:
    """Scale all levels."""
    if not is_plain(image, _U8) or image.shape[-3] not in (1, RGB) or not brightness_factor >= 0:
        return NotImplemented
    return _blended(image, brightness_factor, 0.0)


@kernel("adjust_brightness", "pil")
def adjust_brightness_pil(image: Any, brightness_factor: float) -> Any:
    """Scale all levels."""
    return _blended_pil(image, brightness_factor)


@kernel("adjust_contrast", "tensor")
def adjust_contrast(image: torch.Tensor, contrast_factor: float) -> Any:
    """Move levels away from the mean of the grey, or towards it."""
    if not _is_rgb(image, _U8) or not contrast_factor >= 0:
        return NotImplemented
    made, out = new_planes(image)
    for one, target in each(planes_of(image), out):
        mean = photometric.grey_sum_of_planes(one, False) / one.shape[1]
        offset = float(np.float32(mean)) * (1.0 - contrast_factor)
        photometric.blend_levels(one.reshape(-1), target.reshape(-1), contrast_factor, offset)
    return made


@kernel("adjust_contrast", "pil")
def adjust_contrast_pil(image: Any, contrast_factor: float) -> Any:
    """Move levels away from the mean of the grey, or towards it."""
    return _blended_pil(image, contrast_factor, None)


@kernel("adjust_saturation", "tensor")
def adjust_saturation(image: torch.Tensor, saturation_factor: float) -> Any:
    """Move colours away from their grey, or towards it."""
    if not _is_rgb(image, _U8) or not saturation_factor >= 0:
        return NotImplemented
    made, out = new_planes(image)
    for one, target in each(planes_of(image), out):
        photometric.saturate_planes(one, target, saturation_factor, False)
    return made


@kernel("adjust_saturation", "pil")
def adjust_saturation_pil(image: Any, saturation_factor: float) -> Any:
    """Move colours away from their grey, or towards it."""
    pair = pil_pair(image) if image.mode == "RGB" else None
    if pair is None:
        return NotImplemented
    source, made, out = pair
    photometric.saturate_pixels(numbers(source), numbers(out), saturation_factor)
    return made


@kernel("adjust_hue", "tensor")
def adjust_hue(image: torch.Tensor, hue_factor: float) -> Any:
    """Turn the hue."""
    if not _is_rgb(image, _U8, torch.float32) or not -0.5 <= hue_factor <= 0.5:
        return NotImplemented
    is_bytes = image.dtype == _U8
    turn = photometric.turn_planes if is_bytes else photometric.turn_float_planes
    made, out = new_planes(image)
    for one, target in each(planes_of(image), out):
        turn(one, target, hue_factor % 1.0)
    return made


def pil_shift(hue_factor: float) -> int:
    """Levels that torchvision adds to Pillow's hue."""
    return int(hue_factor * (_LEVELS - 1)) % _LEVELS


@kernel("adjust_hue", "pil")
def adjust_hue_pil(image: Any, hue_factor: float) -> Any:
    """Turn the hue."""
    pair = pil_pair(image) if image.mode == "RGB" and -0.5 <= hue_factor <= 0.5 else None
    if pair is None:
        return NotImplemented
    source, made, out = pair
    photometric.turn_pixels(numbers(source), numbers(out), pil_shift(hue_factor))
    return made


@kernel("rgb_to_grayscale", "tensor")
def rgb_to_grayscale(image: torch.Tensor, num_output_channels: int = 1) -> Any:
    """Grey of colours."""
    if not _is_rgb(image, _U8) or num_output_channels not in (1, RGB):
        return NotImplemented
    made, out = new_planes(image, 1)
    for one, target in each(planes_of(image), out):
        photometric.grey_planes(one, target[0], False)
    return made if num_output_channels == 1 else made.expand(image.shape)


@kernel("rgb_to_grayscale", "pil")
def rgb_to_grayscale_pil(image: Any, num_output_channels: int = 1) -> Any:
    """Grey of colours."""
    usable = image.mode == "RGB" and num_output_channels in (1, RGB)
    pair = pil_pair(image, "L") if usable else None
    if pair is None:
        return NotImplemented
    source, made, out = pair
    photometric.grey_pixels(numbers(source), out.reshape(-1))
    return made if num_output_channels == 1 else made.convert("RGB")


@lru_cache(maxsize=256)
def _table(name: str, pil: bool, arguments: tuple[Any, ...]) -> np.ndarray:
    """Values that torchvision's function has for each level; its errors, too."""
    levels: Any = torch.arange(_LEVELS, dtype=_U8).reshape(1, 1, -1)
    if pil:
        levels = PIL.Image.fromarray(levels[0].numpy(), "L")
    made = getattr(_theirs, name)(levels, **dict(arguments))
    return np.asarray(made).reshape(-1).copy()


def _mapped(name: str, image: torch.Tensor, **arguments: Any) -> Any:
    if not is_plain(image, _U8):
        return NotImplemented
    table = _table(name, False, tuple(arguments.items()))
    source, made, out = flat_pair(image)
    look_up(source, table, out)
    return made


def _mapped_pil(name: str, image: Any, **arguments: Any) -> Any:
    pair = pil_pair(image)
    if pair is None:
        return NotImplemented
    table = _table(name, True, tuple(arguments.items()))
    source, made, out = pair
    look_up(source.reshape(-1), table, out.reshape(-1))
    return made


@kernel("adjust_gamma", "tensor")
def adjust_gamma(image: torch.Tensor, gamma: float, gain: float = 1) -> Any:
    """Raise levels to a power."""
    return _mapped("adjust_gamma", image, gamma=gamma, gain=gain)


@kernel("adjust_gamma", "pil")
def adjust_gamma_pil(image: Any, gamma: float, gain: float = 1) -> Any:
    """Raise levels to a power."""
    return _mapped_pil("adjust_gamma", image, gamma=gamma, gain=gain)


@kernel("solarize", "tensor")
def solarize(image: torch.Tensor, threshold: float) -> Any:
    """Invert levels from a threshold on."""
    return _mapped("solarize", image, threshold=threshold)


@kernel("solarize", "pil")
def solarize_pil(image: Any, threshold: float) -> Any:
    """Invert levels from a threshold on."""
    return _mapped_pil("solarize", image, threshold=threshold)


@kernel("posterize", "pil")
def posterize_pil(image: Any, bits: int) -> Any:
    """Keep the first bits of levels."""
    return _mapped_pil("posterize", image, bits=bits)


@kernel("invert", "pil")
def invert_pil(image: Any) -> Any:
    """Turn levels around."""
    return _mapped_pil("invert", image)


@kernel("autocontrast", "tensor")
def autocontrast(image: torch.Tensor) -> Any:
    """Spread the levels of each channel over all there are."""
    if not is_plain(image, _U8) or image.shape[-3] not in (1, RGB):
        return NotImplemented
    made, out = new_planes(image)
    levels = np.arange(_LEVELS, dtype=np.float32)
    for one, target in each(planes_of(image), out):
        for plane, filled in each(one, target):
            low, high = int(plane.min()), int(plane.max())
            if low == high:
                filled[:] = plane
                continue
            scale = np.float32(high - low) * np.float32(1 / 255)
            table = ((levels - low) / scale).clip(0, _LEVELS - 1).astype(np.uint8)
            look_up(plane, table, filled)
    return made


@kernel("equalize", "tensor")
def equalize(image: torch.Tensor) -> Any:
    """Make the levels of each channel equally frequent, as Pillow does."""
    if not is_plain(image, _U8):
        return NotImplemented
    made, out = new_planes(image)
    for one, target in each(planes_of(image), out):
        for plane, filled in each(one, target):
            counts = np.zeros(_LEVELS, np.int64)
            photometric.histogram(plane, counts)
            step = (plane.size - counts[counts.nonzero()[0][-1]]) // (_LEVELS - 1)
            if not step:
                filled[:] = plane
                continue
            below = np.concatenate(([0], counts.cumsum()[:-1]))
            table = ((below + step // 2) // step).clip(0, _LEVELS - 1).astype(np.uint8)
            look_up(plane, table, filled)
    return made
