"""Augmentations of uint8 images: those of AutoAugment, RandAugment and TrivialAugment."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace import fn, types
from headrace.auto_aug.core import augmentation
from headrace.graph.capture import make_node
from headrace.graph.data_node import DataNode
from headrace.operators.generic.levels import LEVELS, LUMA
from headrace.operators.support.registry import find
from headrace.types import DALIDataType
from headrace.types.arrays import is_array

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
    """Return the number added to dark pixels, uint8."""
    return np.array(min(int(shift), 255), np.uint8)


def _on_cpu(name: str, data: DataNode, *parameters: Any) -> Any:
    """The operator that finds a table of levels for each image; parameters may be numbers."""
    edges = [
        each
        if isinstance(each, DataNode)
        else fn.copy(types.Constant(np.asarray(each, _dtype(each)), device="cpu"))
        for each in parameters
    ]
    return make_node(find(name), (data, *edges), {}).outputs[0]


def _dtype(value: Any) -> Any:
    """The element type of a number or an array, as arithmetic has it."""
    return None if is_array(value) or isinstance(value, np.generic) else np.float32


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
    if data.device == "cpu":
        return _on_cpu("_contrast", data, parameter)
    means = fn.reductions.mean(data, axis_names="HW", keep_dims=True)
    center = fn.reductions.sum(means * LUMA, axis_names="C", keep_dims=True)
    factor = parameter.gpu() if isinstance(parameter, DataNode) else parameter
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
    if data.device == "cpu":
        return _on_cpu("_solarize", data, threshold)
    dark = data < threshold
    return fn.cast(dark * data + (dark ^ True) * (255 - data), dtype=_UINT8)


@augmentation(mag_range=(0, 110), mag_to_param=solarize_add_shift, param_device="auto")
def solarize_add(data: DataNode, shift: Any) -> Any:
    """Add to levels below 128."""
    if data.device == "cpu":
        return _on_cpu("_solarize_add", data, shift)
    dark = data < 128
    return fn.cast(fn.cast(data, dtype=_INT16) + dark * shift, dtype=_UINT8)


@augmentation
def invert(data: DataNode, _: Any) -> Any:
    """Invert levels."""
    if data.device == "cpu":
        table = fn.copy(types.Constant(255 - LEVELS, device="cpu"))
        return make_node(find("_map_levels"), (data, table), {}).outputs[0]
    return fn.cast(255 - data, dtype=_UINT8)


@augmentation
def equalize(data: DataNode, _: Any) -> Any:
    """Equalize the histogram of each channel."""
    return fn.equalize(data)


@augmentation
def auto_contrast(data: DataNode, _: Any) -> Any:
    """Stretch the levels of each channel to the whole range."""
    if data.device == "cpu":
        return _on_cpu("_auto_contrast", data)
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
