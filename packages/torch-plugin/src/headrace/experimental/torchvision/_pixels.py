"""Memory of PIL images and tensors as NumPy arrays, without a copy where that is possible."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import PIL.Image
import torch

_BANDS = {"L": 1, "RGB": 4, "RGBA": 4}
"""Bytes of a pixel in memory, by mode: RGB has one that is not used."""


class _ArrowArray(ctypes.Structure):
    """Arrow's C data interface, by which Pillow (from 11.3 on) lends its memory."""


_ArrowArray._fields_ = [
    ("length", ctypes.c_int64),
    ("null_count", ctypes.c_int64),
    ("offset", ctypes.c_int64),
    ("n_buffers", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("buffers", ctypes.POINTER(ctypes.c_void_p)),
    ("children", ctypes.POINTER(ctypes.POINTER(_ArrowArray))),
]

_pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
_pointer_of.restype = ctypes.c_void_p
_pointer_of.argtypes = [ctypes.py_object, ctypes.c_char_p]


def _lent(image: Any) -> np.ndarray | None:
    """Memory of an image ``(H, W, bytes of a pixel)``; valid while the image is there."""
    bands = _BANDS[image.mode]
    try:
        _, capsule = image.__arrow_c_array__()
    except (AttributeError, ValueError, TypeError):  # older, or in several blocks
        return None
    array = _ArrowArray.from_address(_pointer_of(capsule, b"arrow_array"))
    if array.n_children:
        array = array.children[0].contents
    if array.offset or array.n_buffers != 2:
        return None
    width, height = image.size
    if array.length != width * height * bands:
        return None
    memory = (ctypes.c_uint8 * array.length).from_address(array.buffers[1])
    return np.frombuffer(memory, np.uint8).reshape(height, width, bands)


def pil_pixels(image: Any) -> np.ndarray | None:
    """Pixels of an image of bytes, HWC; RGB may have a fourth channel of no meaning."""
    if image.mode not in _BANDS or not image.width or not image.height:
        return None
    pixels = _lent(image)
    if pixels is None:
        pixels = np.asarray(image)
        if pixels.ndim == 2:
            pixels = pixels[..., None]
    return pixels


def new_pil_image(mode: str, width: int, height: int) -> tuple[Any, np.ndarray] | None:
    """An image, and its memory to write to."""
    image = PIL.Image.new(mode, (width, height), None)
    pixels = _lent(image)
    return None if pixels is None else (image, pixels)


def is_plain(tensor: torch.Tensor, *dtypes: torch.dtype) -> bool:
    """True for a tensor of pixels that kernels may take: on the host, and not differentiated."""
    return (
        tensor.dtype in dtypes
        and tensor.device.type == "cpu"
        and not tensor.requires_grad
        and tensor.ndim >= 3
        and tensor.numel() > 0
        and tensor.layout == torch.strided
    )
