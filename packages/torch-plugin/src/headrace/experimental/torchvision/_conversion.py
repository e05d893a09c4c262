"""PIL images into tensors and back."""

from __future__ import annotations

from typing import Any

import numpy as np
import PIL.Image
import torch

from headrace.experimental.torchvision._inputs import check_mode, tv_tensors
from headrace.experimental.torchvision._installed import torchvision_module
from headrace.experimental.torchvision._pixels import is_plain, new_pil_image, pil_pixels
from headrace.experimental.torchvision._planes import RGB
from headrace.kernels.cpu.opencv import cv2
from headrace.kernels.cpu.transpose import transpose_into

_theirs = torchvision_module("transforms.v2.functional")
_ALL = 4


def split_pixels(pixels: np.ndarray, planes: np.ndarray) -> None:
    """Fill planes with the first channels of pixels HWC."""
    if pixels.shape[2] == len(planes) or pixels.strides[1] != _ALL or pixels.strides[2] != 1:
        transpose_into(pixels[..., : len(planes)], (2, 0, 1), planes)  # negative strides, too
    else:
        cv2().split(pixels, [*planes, np.empty_like(planes[0])])


def pil_to_tensor(pic: Any) -> Any:
    """A PIL image as a tensor CHW of the same type."""
    check_mode(pic)
    pixels = None
    if isinstance(pic, PIL.Image.Image) and pic.mode in ("L", "RGB"):
        pixels = pil_pixels(pic)
    if pixels is None:
        return _theirs.pil_to_tensor(pic)
    made = torch.empty((1 if pic.mode == "L" else RGB, pic.height, pic.width), dtype=torch.uint8)
    split_pixels(pixels, made.numpy())
    return made


def to_image(inpt: Any) -> Any:
    """An image of any kind as a `tv_tensors.Image`."""
    if isinstance(inpt, PIL.Image.Image):
        return tv_tensors.Image(pil_to_tensor(inpt))
    return _theirs.to_image(inpt)


def to_tensor(inpt: Any) -> Any:
    """A PIL image or an array as a tensor from 0 to 1."""
    check_mode(inpt)
    return _theirs.to_tensor(inpt)


def to_pil_image(pic: Any, mode: str | None = None, input_layout: str = "CHW") -> Any:
    """A tensor or an array as a PIL image; `input_layout` is that of a tensor, CHW or HWC."""
    if isinstance(pic, torch.Tensor):
        if input_layout == "HWC":
            pic = pic.movedim(-1, -3)
        is_rgb = pic.ndim == 3 and is_plain(pic, torch.uint8) and pic.shape[0] == RGB
        if is_rgb and mode is None and pic.stride(0) != 1:  # else pixels are as Pillow's
            made = new_pil_image("RGB", pic.shape[2], pic.shape[1])
            if made is not None:
                planes = pic.as_subclass(torch.Tensor).numpy()
                cv2().merge([*planes, np.full_like(planes[0], 255)], made[1])
                return made[0]
    return _theirs.to_pil_image(pic, mode)
