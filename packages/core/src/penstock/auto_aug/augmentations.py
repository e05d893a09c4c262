"""Augmentations of uint8 images: those of AutoAugment, RandAugment and TrivialAugment."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from penstock import fn, types
from penstock.auto_aug.core import augmentation
from penstock.graph.capture import make_node
from penstock.graph.data_node import DataNode
from penstock.operators.generic.levels import LEVELS, LUMA
from penstock.operators.support.registry import find
from penstock.types import DALIDataType
from penstock.types.arrays import is_array

_UINT8, _FLOAT, _INT16 = DALIDataType.UINT8, DALIDataType.FLOAT, DALIDataType.INT16


def warp_x_param(magnitude: float) -> np.ndarray:
    """An offset, or a shear, along the rows."""
    return np.array([magnitude, 0], np.float32)


def warp_y_param(magnitude: float) -> np.ndarray:
    """An offset, or a shear, along the columns."""
    return np.array([0, magnitude], np.float32)


def shift_enhance_range(magnitude: float) -> np.ndarray:
    """A factor around 1."""
    return np.array(1 + magnitude, np.float32)


def sharpness_kernel(magnitude: float) -> np.ndarray:
    """A filter that sharpens, or with a negative magnitude smooths."""
    smooth = np.array([[1, 1, 1], [1, 5, 1], [1, 1, 1]], np.float32) / np.float32(13)
    same = np.zeros((3, 3), np.float32)
    same[1, 1] = 1
    blend: np.ndarray = (smooth * (-magnitude) + same * (1 + magnitude)).astype(np.float32)
    return blend


def sharpness_kernel_shifted(magnitude: float) -> np.ndarray:
    """The same for magnitudes around 1."""
    return sharpness_kernel(magnitude - 1)


def poster_mask_uint8(magnitude: float) -> np.ndarray:
    """A mask of the bits that are kept: at least one."""
    bits = max(1, min(8, int(np.round(magnitude))))
    return np.array(256 - (1 << (8 - bits)), np.uint8)


def solarize_add_shift(shift: float) -> np.ndarray:
    """What is added to dark pixels."""
    return np.array(min(int(shift), 255), np.uint8)


def _by_level(function: Callable[[Any], Any], data: DataNode) -> Any:
    """``function(data)``, of single pixels: on the CPU computed for each level, once a sample."""
    if data.device != "cpu":
        return function(data)
    table = function(fn.copy(types.Constant(LEVELS, device="cpu")))
    return make_node(find("_map_levels"), (data, table), {}).outputs[0]


def _warp(data: DataNode, matrix: Any, fill_value: Any, interp_type: Any) -> DataNode:
    given = {} if interp_type is None else {"interp_type": interp_type}
    return fn.warp_affine(data, matrix, fill_value=fill_value, inverse_map=False, **given)


@augmentation(mag_range=(0, 0.3), randomly_negate=True, mag_to_param=warp_x_param)
def shear_x(data: DataNode, shear: Any, fill_value: Any = 128, interp_type: Any = None) -> Any:
    """Shear along the rows; magnitudes are tangents."""
    return _warp(data, fn.transforms.shear(shear=shear), fill_value, interp_type)


@augmentation(mag_range=(0, 0.3), randomly_negate=True, mag_to_param=warp_y_param)
def shear_y(data: DataNode, shear: Any, fill_value: Any = 128, interp_type: Any = None) -> Any:
    """Shear along the columns; magnitudes are tangents."""
    return _warp(data, fn.transforms.shear(shear=shear), fill_value, interp_type)


def _relative(rel_offset: Any, shape: Any) -> Any:
    """Offsets in pixels, x first, of shares of the extents."""
    if isinstance(shape, DataNode):
        return rel_offset * fn.cast(fn.stack(shape[1], shape[0]), dtype=_FLOAT)
    return rel_offset * np.array([shape[1], shape[0]], np.float32)


@augmentation(mag_range=(0.0, 1.0), randomly_negate=True, mag_to_param=warp_x_param)
def translate_x(
    data: DataNode, rel_offset: Any, shape: Any, fill_value: Any = 128, interp_type: Any = None
) -> Any:
    """Move along the rows; magnitudes are shares of the width."""
    offset = _relative(rel_offset, shape)
    return _warp(data, fn.transforms.translation(offset=offset), fill_value, interp_type)


@augmentation(
    mag_range=(0, 250), randomly_negate=True, mag_to_param=warp_x_param, name="translate_x"
)
def translate_x_no_shape(
    data: DataNode, offset: Any, fill_value: Any = 128, interp_type: Any = None
) -> Any:
    """Move along the rows; magnitudes are pixels."""
    return _warp(data, fn.transforms.translation(offset=offset), fill_value, interp_type)


@augmentation(mag_range=(0.0, 1.0), randomly_negate=True, mag_to_param=warp_y_param)
def translate_y(
    data: DataNode, rel_offset: Any, shape: Any, fill_value: Any = 128, interp_type: Any = None
) -> Any:
    """Move along the columns; magnitudes are shares of the height."""
    offset = _relative(rel_offset, shape)
    return _warp(data, fn.transforms.translation(offset=offset), fill_value, interp_type)


@augmentation(
    mag_range=(0, 250), randomly_negate=True, mag_to_param=warp_y_param, name="translate_y"
)
def translate_y_no_shape(
    data: DataNode, offset: Any, fill_value: Any = 128, interp_type: Any = None
) -> Any:
    """Move along the columns; magnitudes are pixels."""
    return _warp(data, fn.transforms.translation(offset=offset), fill_value, interp_type)


@augmentation(mag_range=(0, 30), randomly_negate=True)
def rotate(
    data: DataNode,
    angle: Any,
    fill_value: Any = 128,
    interp_type: Any = None,
    rotate_keep_size: bool = True,
) -> Any:
    """Rotate; magnitudes are degrees."""
    given = {} if interp_type is None else {"interp_type": interp_type}
    return fn.rotate(data, angle=angle, fill_value=fill_value, keep_size=rotate_keep_size, **given)


@augmentation(mag_range=(0, 0.9), randomly_negate=True, mag_to_param=shift_enhance_range)
def brightness(data: DataNode, parameter: Any) -> Any:
    """Multiply levels."""
    return fn.brightness(data, brightness=parameter)


@augmentation(mag_range=(0, 0.9), randomly_negate=True, mag_to_param=shift_enhance_range)
def contrast(data: DataNode, parameter: Any) -> Any:
    """Multiply distances from the mean luma of the image."""
    is_node = isinstance(parameter, DataNode)
    if data.device == "cpu":
        if not is_node:
            factor = np.asarray(parameter, None if is_array(parameter) else np.float32)
            parameter = fn.copy(types.Constant(factor, device="cpu"))
        return make_node(find("_contrast"), (data, parameter), {}).outputs[0]
    means = fn.reductions.mean(data, axis_names="HW", keep_dims=True)
    center = fn.reductions.sum(means * LUMA, axis_names="C", keep_dims=True)
    factor = parameter.gpu() if is_node else parameter
    return fn.cast(center + (data - center) * factor, dtype=_UINT8)


@augmentation(mag_range=(0, 0.9), randomly_negate=True, mag_to_param=shift_enhance_range)
def color(data: DataNode, parameter: Any) -> Any:
    """Multiply saturation."""
    return fn.saturation(data, saturation=parameter)


@augmentation(
    mag_range=(0, 0.9), randomly_negate=True, mag_to_param=sharpness_kernel, param_device="auto"
)
def sharpness(data: DataNode, kernel: Any) -> Any:
    """Sharpen or smooth."""
    return fn.filter(data, kernel)


@augmentation(mag_range=(0, 4), mag_to_param=poster_mask_uint8, param_device="auto")
def posterize(data: DataNode, mask: Any) -> Any:
    """Keep the highest bits of levels; magnitudes are how many."""
    return data & mask


@augmentation(mag_range=(256, 0), param_device="auto")
def solarize(data: DataNode, threshold: Any) -> Any:
    """Invert levels from a threshold on."""

    def solarized(levels: Any) -> Any:
        dark = levels < threshold
        return fn.cast(dark * levels + (dark ^ True) * (255 - levels), dtype=_UINT8)

    return _by_level(solarized, data)


@augmentation(mag_range=(0, 110), mag_to_param=solarize_add_shift, param_device="auto")
def solarize_add(data: DataNode, shift: Any) -> Any:
    """Add to levels below 128."""

    def shifted(levels: Any) -> Any:
        dark = levels < 128
        return fn.cast(fn.cast(levels, dtype=_INT16) + dark * shift, dtype=_UINT8)

    return _by_level(shifted, data)


@augmentation
def invert(data: DataNode, _: Any) -> Any:
    """Invert levels."""
    return _by_level(lambda levels: fn.cast(255 - levels, dtype=_UINT8), data)


@augmentation
def equalize(data: DataNode, _: Any) -> Any:
    """Equalize the histogram of each channel."""
    return fn.equalize(data)


@augmentation
def auto_contrast(data: DataNode, _: Any) -> Any:
    """Stretch the levels of each channel to the whole range."""
    if data.device == "cpu":
        return make_node(find("_auto_contrast"), (data,), {}).outputs[0]
    low = fn.reductions.min(data, axis_names="HW", keep_dims=True)
    high = fn.reductions.max(data, axis_names="HW", keep_dims=True)
    extent = high - low
    flat = fn.cast(extent == 0, dtype=_FLOAT)
    scale = 255.0 / (extent + flat)
    return fn.cast((data - low) * scale * (1 - flat) + data * flat, dtype=_UINT8)


@augmentation
def identity(data: DataNode, _: Any) -> Any:
    """Leave the data as it is."""
    return data
