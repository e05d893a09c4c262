"""Rotation, affine maps, perspective and elastic deformation of tensors.

torchvision checks arguments and works out the map; making the grid of points, and looking up pixels
at them, is ours.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from headrace.experimental.torchvision._dispatch import Kernel, kernel
from headrace.experimental.torchvision._installed import torchvision_module
from headrace.experimental.torchvision._pixels import is_plain
from headrace.experimental.torchvision._planes import each, planes_of
from headrace.experimental.torchvision._rebound import rebound
from headrace.kernels.cpu.grid_sample import (
    affine_grid,
    perspective_grid,
    sample_linear,
    sample_nearest,
)

_geometry = torchvision_module("transforms.v2.functional._geometry")
_theirs, _their_grid = _geometry._apply_grid_transform, _geometry._affine_grid
_their_seen = _geometry._perspective_grid
_SEVERAL = 4


def _look_up(image: torch.Tensor, grid: torch.Tensor, mode: str, fill: Any) -> torch.Tensor:
    """Take the place of torchvision's function of these arguments."""
    taken = is_plain(image, torch.uint8, torch.float32) and is_plain(grid, torch.float32)
    if not taken or len(grid) != 1 or mode not in ("nearest", "bilinear"):
        return _theirs(image, grid, mode, fill)  # type: ignore[no-any-return]
    *lead, channels, height, width = image.shape
    size = grid.shape[1], grid.shape[2]
    made = torch.empty((*lead, channels, *size), dtype=image.dtype)
    out = made.numpy().reshape(-1, channels, size[0] * size[1])
    points = grid.contiguous().numpy().reshape(-1, 2)
    is_bytes = image.dtype == torch.uint8
    filled = np.zeros(channels, np.float32)
    if fill is not None:
        filled[:] = fill
    values = np.rint(filled).clip(0, 255) if is_bytes else filled
    for one, target in each(planes_of(image), out):
        if mode == "nearest":
            sample_nearest(one, points, values.astype(target.dtype), height, width, target)
        else:
            sample_linear(one, points, filled, fill is not None, is_bytes, height, width, target)
    return made


def _grid(theta: torch.Tensor, w: int, h: int, ow: int, oh: int) -> torch.Tensor:
    """Take the place of torchvision's function of these arguments."""
    if theta.dtype != torch.float32:
        return _their_grid(theta, w, h, ow, oh)  # type: ignore[no-any-return]
    made = torch.empty((1, oh, ow, 2))
    affine_grid(theta[0].numpy(), h, w, made.numpy()[0])
    return made


def _seen(coeffs: Any, ow: int, oh: int, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    """Take the place of torchvision's function of these arguments."""
    if dtype != torch.float32 or device.type != "cpu":
        return _their_seen(coeffs, ow, oh, dtype, device)  # type: ignore[no-any-return]
    made = torch.empty((1, oh, ow, 2))
    perspective_grid(np.asarray(coeffs, np.float32), made.numpy()[0])
    return made


def _enter(name: str) -> None:
    run: Kernel = rebound(
        getattr(_geometry, f"{name}_image"),
        _apply_grid_transform=_look_up,
        _affine_grid=_grid,
        _perspective_grid=_seen,
    )

    @kernel(name, "tensor")
    def warp(image: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        if not is_plain(image, torch.uint8, torch.float32):
            return NotImplemented
        if name == "elastic" and image.ndim < _SEVERAL:
            return NotImplemented  # PyTorch is faster at looking up the pixels of one image
        return run(image, *args, **kwargs)


for _name in ("affine", "rotate", "perspective", "elastic"):
    _enter(_name)
