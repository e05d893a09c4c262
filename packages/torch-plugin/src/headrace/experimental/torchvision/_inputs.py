"""Kinds of inputs: what is an image here, and NumPy arrays as tensors and back."""

from __future__ import annotations

from typing import Any

import numpy as np
import PIL.Image
import torch
from torch.utils._pytree import tree_map

from headrace.errors import ArgumentValueError, GpuNotAvailableError
from headrace.experimental.torchvision._installed import torchvision_module

tv_tensors = torchvision_module("tv_tensors")

IMAGES = (torch.Tensor, tv_tensors.Image, tv_tensors.Video)
"""Types of tensors that are images; those of users, even below these, have their own kernels."""

_CHANNELS = (1, 2, 3, 4)


def kind_of(cls: type) -> str | None:
    """The column of the table of kernels for inputs of a class."""
    if cls in IMAGES:
        return "tensor"
    return "pil" if issubclass(cls, PIL.Image.Image) else None


def is_array_image(value: Any, *, alone: bool) -> bool:
    """True for a NumPy array of pixels: HWC or more axes before; HW only if it is the sample."""
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "uif":
        return False
    return (value.ndim >= 3 and value.shape[-1] in _CHANNELS) or (alone and value.ndim == 2)


def as_tensor(array: np.ndarray) -> Any:
    """An image ``(..., C, H, W)`` on the memory of an array, HWC or HW, where that is possible."""
    if any(stride < 0 for stride in array.strides) or not array.flags.writeable:
        array = array.copy()
    tensor = torch.from_numpy(array)
    tensor = tensor[None] if array.ndim == 2 else tensor.movedim(-1, -3)
    return tv_tensors.Image(tensor)


def as_array(output: Any, ndim: int) -> Any:
    """Results for such an image: arrays HWC again, or HW if it came so and still can be."""

    def back(value: Any) -> Any:
        if type(value) not in IMAGES:
            return value
        array = value.as_subclass(torch.Tensor).movedim(-3, -1).contiguous().numpy()
        return array[..., 0] if ndim == 2 and array.shape[-1] == 1 else array

    return tree_map(back, output)


def check_mode(image: Any) -> None:
    """Refuse images whose four channels are not RGBA."""
    if isinstance(image, PIL.Image.Image) and image.mode == "CMYK":
        raise ArgumentValueError(
            "the PIL image has the mode 'CMYK', whose four channels transforms would take for "
            "colours that they are not. Convert it first: `image.convert('RGB')`."
        )


def on_device(value: Any, device: Any) -> Any:
    """A tensor where `device` says: "cpu" leaves it where it is, as all of torchvision does."""
    if device in (None, "cpu") or not isinstance(value, torch.Tensor):
        return value
    if str(device).partition(":")[0] not in ("gpu", "cuda"):
        raise ArgumentValueError(f"`device` is {device!r}; it can be 'cpu' or 'gpu'.")
    if not torch.cuda.is_available():
        raise GpuNotAvailableError(
            f"`device` is {device!r}, and PyTorch has no GPU here. Leave it out, and tensors are "
            "processed where they are."
        )
    return value.to("cuda" if device == "gpu" else device)
