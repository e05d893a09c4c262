"""The operators whose kernels are measured, and the bytes that each of them has to move."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.support.graphs import MEAN, STD
from benchmarks.support.operator_chain import Call
from headrace import types

_UINT8, _FLOAT = np.dtype(np.uint8), np.dtype(np.float32)


@dataclass(frozen=True)
class Case:
    """One kernel, or some that are fused.

    `name`: for the table. `calls`: the operators. `dtype`: of the input; `None` for generators.
    `reads_what_it_writes`: whether only as many elements are read as are written (crops); else all
    of the input.
    """

    name: str
    calls: Sequence[Call]
    dtype: np.dtype | None = _UINT8
    reads_what_it_writes: bool = False

    def bytes_moved(self, shapes: np.ndarray, output: Any) -> int:
        """Bytes that have to be read and written: each element of input and output once."""
        written = int(output.sizes().sum())
        read = 0
        if self.dtype is not None:
            elements = int(np.prod(shapes, axis=1).sum())
            read = (written if self.reads_what_it_writes else elements) * self.dtype.itemsize
        return read + written * output.dtype.itemsize


def _spread(low: float, high: float, count: int) -> list[np.ndarray]:
    """One number a sample, all different."""
    return [np.array(v, np.float32) for v in np.linspace(low, high, count)]


def _zooms(count: int, extent: tuple[int, int]) -> list[np.ndarray]:
    """Maps of an output of 224 by 224 to all of an image, turned a little, each by itself."""
    height, width = extent
    found = []
    for angle in np.linspace(-0.3, 0.3, count):
        sine, cosine = np.sin(angle), np.cos(angle)
        turn = np.array([[cosine, -sine], [sine, cosine]]) * np.array([[width], [height]]) / 224
        offset = np.array([width / 2, height / 2]) - turn @ np.array([112, 112])
        found.append(np.column_stack([turn, offset]).astype(np.float32))
    return found


def _mirrored(count: int) -> list[np.ndarray]:
    return [np.array(k % 2, np.int32) for k in range(count)]


def _normalisation(count: int, dtype: Any, **more: Any) -> Call:
    arguments = {"mean": MEAN, "std": STD, "mirror": _mirrored(count), "output_layout": "CHW"}
    return "crop_mirror_normalize", {**arguments, "dtype": dtype, **more}


def cases(count: int, extent: tuple[int, int]) -> list[Case]:
    """What is measured, on `count` images; `extent` is the least height and width of them."""
    crop = [float(e * 9 // 10) for e in extent]
    number: Callable[[float], tuple[Any, ...]] = lambda v: ("const", v, types.FLOAT)  # noqa: E731
    product = ("mul", ("input", 0), number(1.5))
    linear: Call = ("_arithmetic_generic_op", {"expression": ("add", product, number(3.0))})
    resize: Call = ("resize", {"resize_x": 224.0, "resize_y": 224.0})
    rotate = {"angle": _spread(-30, 30, count), "keep_size": True}
    zoom = {"matrix": _zooms(count, extent), "size": (224.0, 224.0), "fill_value": 0.0}
    whole = _normalisation(count, types.FLOAT16)
    window = _normalisation(count, types.FLOAT16, crop=crop)
    light = {"brightness": _spread(0.7, 1.3, count), "contrast": _spread(1.3, 0.7, count)}
    colour = {"hue": _spread(-30, 30, count), "saturation": _spread(0.5, 1.5, count)}
    twist: Call = ("color_twist", {**colour, **light})
    to_ycbcr = {"image_type": types.RGB, "output_type": types.YCbCr}
    to_grey = {"image_type": types.RGB, "output_type": types.GRAY}
    half, single = types.FLOAT16, types.FLOAT
    seen = [1.0, 0.1, 3.0, 0.0, 1.0, 2.0, 0.0001, 0.0, 1.0]
    return [
        Case("copy", [("copy", {})]),
        Case("cast uint8 to float32", [("cast", {"dtype": single})]),
        Case("cast uint8 to float16", [("cast", {"dtype": half})]),
        Case("cast float32 to uint8", [("cast", {"dtype": types.UINT8})], _FLOAT),
        Case("x * 1.5 + 3 of uint8", [linear]),
        Case("x * 1.5 + 3 of float32", [linear], _FLOAT),
        Case("brightness_contrast", [("brightness_contrast", light)]),
        Case("color_twist", [twist]),
        Case("color_twist to float32", [("color_twist", {**colour, "dtype": single})]),
        Case(
            "color_twist of a crop, fused",
            [("crop", {"crop": crop}), twist],
            reads_what_it_writes=True,
        ),
        Case("color_twist + crop_mirror_normalize, fused", [twist, _normalisation(count, half)]),
        Case("color_space_conversion RGB to YCbCr", [("color_space_conversion", to_ycbcr)]),
        Case("color_space_conversion RGB to GRAY", [("color_space_conversion", to_grey)]),
        Case("transpose HWC to CHW", [("transpose", {"perm": [2, 0, 1]})]),
        Case("transpose HWC to CHW, float32", [("transpose", {"perm": [2, 0, 1]})], _FLOAT),
        Case("transpose HWC to WHC", [("transpose", {"perm": [1, 0, 2]})]),
        Case("crop", [("crop", {"crop": crop})], reads_what_it_writes=True),
        Case("flip, horizontal", [("flip", {"horizontal": 1})]),
        Case("flip, vertical", [("flip", {"horizontal": 0, "vertical": 1})]),
        Case("crop_mirror_normalize float16", [_normalisation(count, half)]),
        Case("crop_mirror_normalize float32", [_normalisation(count, single)]),
        Case(
            "crop_mirror_normalize, crop",
            [_normalisation(count, half, crop=crop)],
            reads_what_it_writes=True,
        ),
        Case("normalize", [("normalize", {"axes": [0, 1]})]),
        Case("resize 224", [resize]),
        Case("resize 224, cubic", [(resize[0], {**resize[1], "interp_type": types.INTERP_CUBIC})]),
        Case("resize 224, no antialiasing", [(resize[0], {**resize[1], "antialias": False})]),
        Case("resize 1.5 times", [("resize", {"size": [1.5 * e for e in extent]})]),
        Case("resize 224 + normalize, fused", [resize, _normalisation(count, half)]),
        Case("rotate", [("rotate", rotate)]),
        Case("rotate + normalize, fused", [("rotate", rotate), whole]),
        Case("rotate + crop + normalize, fused", [("rotate", rotate), window]),
        Case("warp_affine to 224", [("warp_affine", zoom)]),
        Case("warp_affine to 224 + normalize, fused", [("warp_affine", zoom), whole]),
        Case("gaussian_blur, sigma 1.5", [("gaussian_blur", {"sigma": [1.5]})]),
        Case("gaussian_blur, sigma 5", [("gaussian_blur", {"sigma": [5.0]})]),
        Case("sum of each pixel's channels", [("reductions.sum", {"axes": [2]})], _FLOAT),
        Case("mean of channels", [("reductions.mean", {"axes": [0, 1]})]),
        Case("max of columns", [("reductions.max", {"axes": [0]})]),
        Case("equalize", [("equalize", {})]),
        Case("grid_mask", [("grid_mask", {"tile": 50, "angle": 0.3})]),
        Case("sphere", [("sphere", {})]),
        Case("water", [("water", {})]),
        Case("salt_and_pepper", [("noise.salt_and_pepper", {"prob": 0.1})]),
        Case("jpeg_compression_distortion", [("jpeg_compression_distortion", {"quality": 50})]),
        Case("warp_perspective", [("experimental.warp_perspective", {"matrix": seen})]),
        Case("random.uniform", [("random.uniform", {"shape": [*extent, 3]})], None),
        Case("random.normal", [("random.normal", {"shape": [*extent, 3]})], None),
    ]
