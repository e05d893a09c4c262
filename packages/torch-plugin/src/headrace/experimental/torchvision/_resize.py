"""Resizing by the engine's resampler, with the filters of Pillow and PyTorch."""

from __future__ import annotations

import threading
from typing import Any, NamedTuple

import numpy as np
import torch

from headrace.experimental.torchvision._dispatch import kernel
from headrace.experimental.torchvision._installed import torchvision_module
from headrace.experimental.torchvision._pixels import is_plain, new_pil_image, pil_pixels
from headrace.kernels.cpu.clipped_taps import ClippedFilter, clipped_taps
from headrace.kernels.cpu.resample import resample_image
from headrace.kernels.cpu.resample_taps import Taps

_geometry = torchvision_module("transforms.v2.functional._geometry")
check_interpolation = _geometry._check_interpolation
resized_size = _geometry._compute_resized_output_size

FILTERS = {"bilinear": ClippedFilter.BILINEAR}
PIL_FILTERS = {**FILTERS, "box": ClippedFilter.BOX, "hamming": ClippedFilter.HAMMING}
"""Interpolations by kernels of ours. Weights of the others are negative in part: what Pillow and
PyTorch cut off between rows and columns is seen, so theirs do it.
"""
_U8 = np.dtype(np.uint8)
_local = threading.local()


def scratch(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """Memory of the thread's own, to be used at once."""
    (size,) = shape
    kept: np.ndarray | None = getattr(_local, "scratch", None)
    if kept is None or kept.size < size:
        kept = _local.scratch = np.empty(size, np.float32)
    return kept[:size]


class Window(NamedTuple):
    """The part of an image that is resized."""

    top: int
    left: int
    height: int
    width: int


def taps_for(
    window: Window,
    size: tuple[int, int],
    kind: ClippedFilter,
    antialias: bool,
    mirror: tuple[bool, bool] = (False, False),
) -> tuple[Taps, Taps]:
    """Taps of rows and columns."""
    axes = zip(size, window[2:], window[:2], mirror, strict=True)
    rows, columns = (
        clipped_taps(length, out, kind, antialias=antialias, start=start, mirror=flip)
        for out, length, start, flip in axes
    )
    return rows, columns


def resample_tensor(
    image: torch.Tensor, window: Window, size: tuple[int, int], kind: ClippedFilter, antialias: bool
) -> torch.Tensor:
    """Resize a window of all images of a tensor ``(..., C, H, W)``."""
    rows, columns = taps_for(window, size, kind, antialias)
    *lead, channels, height, width = image.shape
    images = image.reshape(-1, channels, height, width)
    source = images.numpy()
    rounds = _U8 if image.dtype == torch.uint8 else None
    itemsize = source.itemsize
    of_pixels = channels > 1 and source.strides[1] == itemsize
    out = torch.empty(
        (len(source), channels, *size),
        dtype=image.dtype,
        memory_format=torch.channels_last if of_pixels else torch.contiguous_format,
    )
    target = out.numpy()
    if of_pixels:
        source, target = source.transpose(0, 2, 3, 1), target.transpose(0, 2, 3, 1)
    else:
        source = source.reshape(-1, height, width, 1)
        target = target.reshape(-1, *size, 1)
    for one, made in zip(source, target, strict=True):
        resample_image(one, 0, 0, rows, columns, made, scratch, rounds_to=rounds)
    return out.reshape(*lead, channels, *size)


def _inside(window: Window, height: int, width: int) -> bool:
    top, left, rows, columns = window
    return top >= 0 and left >= 0 and top + rows <= height and left + columns <= width


def _resized(
    image: torch.Tensor, window: Window, size: Any, interpolation: Any, antialias: Any
) -> Any:
    kind = FILTERS.get(check_interpolation(interpolation).value)
    height, width = image.shape[-2:]
    if (
        kind is None
        or not is_plain(image, torch.uint8, torch.float32)
        or min(*size, *window[2:]) < 1
        or not _inside(window, height, width)
    ):
        return NotImplemented
    return resample_tensor(image, window, tuple(size), kind, bool(antialias))


@kernel("resize", "tensor")
def resize_tensor(
    image: torch.Tensor,
    size: Any,
    interpolation: Any = "bilinear",
    max_size: int | None = None,
    antialias: bool | None = True,
) -> Any:
    """Resize images."""
    height, width = image.shape[-2:]
    made = resized_size((height, width), size=size, max_size=max_size)
    if tuple(made) == (height, width):
        return NotImplemented
    return _resized(image, Window(0, 0, height, width), made, interpolation, antialias)


@kernel("resized_crop", "tensor")
def resized_crop_tensor(
    image: torch.Tensor,
    top: int,
    left: int,
    height: int,
    width: int,
    size: Any,
    interpolation: Any = "bilinear",
    antialias: bool | None = True,
) -> Any:
    """Resize a window of images, without a copy of it."""
    if height < 1 or width < 1 or image.ndim < 3:
        return NotImplemented
    made = resized_size((height, width), size=size)
    if tuple(made) == (height, width):
        return NotImplemented
    return _resized(image, Window(top, left, height, width), made, interpolation, antialias)


def _resized_pil(image: Any, window: Window, size: Any, interpolation: Any) -> Any:
    kind = PIL_FILTERS.get(check_interpolation(interpolation).value)
    if kind is None or image.mode not in ("RGB", "L") or min(*size, *window[2:]) < 1:
        return NotImplemented
    pixels = pil_pixels(image)
    made = new_pil_image(image.mode, size[1], size[0])
    if pixels is None or made is None or not _inside(window, image.height, image.width):
        return NotImplemented
    rows, columns = taps_for(window, tuple(size), kind, True)
    resample_image(pixels, 0, 0, rows, columns, made[1], scratch, rounds_to=_U8)
    return made[0]


@kernel("resize", "pil")
def resize_pil(
    image: Any,
    size: Any,
    interpolation: Any = "bilinear",
    max_size: int | None = None,
    antialias: bool | None = True,
) -> Any:
    """Resize a PIL image."""
    made = resized_size((image.height, image.width), size=size, max_size=max_size)
    if antialias is False or tuple(made) == (image.height, image.width):
        return NotImplemented  # torchvision warns of the former
    window = Window(0, 0, image.height, image.width)
    return _resized_pil(image, window, made, interpolation)


@kernel("resized_crop", "pil")
def resized_crop_pil(
    image: Any,
    top: int,
    left: int,
    height: int,
    width: int,
    size: Any,
    interpolation: Any = "bilinear",
    antialias: bool | None = True,
) -> Any:
    """Resize a window of a PIL image, without a copy of it."""
    if height < 1 or width < 1:
        return NotImplemented
    made = resized_size((height, width), size=size)
    if tuple(made) == (height, width):
        return NotImplemented
    return _resized_pil(image, Window(top, left, height, width), made, interpolation)
