"""``values="dali"``: the functions whose values differ from torchvision's, by the operators.

DALI's filters have the outermost pixels stand for those outside, colours change by one matrix, in a
fixed order, and grey and blur are rounded in other places.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import PIL.Image
import torch

from headrace import types
from headrace.errors import ArgumentValueError
from headrace.experimental import dynamic
from headrace.experimental.torchvision._checks import check_channels, check_size
from headrace.experimental.torchvision._inputs import kind_of, tv_tensors
from headrace.experimental.torchvision._resize import check_interpolation, resized_size

_DEGREES = 360.0
_INTERPOLATIONS = {
    "nearest": types.INTERP_NN,
    "bilinear": types.INTERP_LINEAR,
    "bicubic": types.INTERP_CUBIC,
    "lanczos": types.INTERP_LANCZOS3,
}


def _by_image(image: Any, run: Callable[[Any], Any]) -> Any:
    """Run an operator on each image HWC of a PIL image or a tensor."""

    def made(pixels: np.ndarray) -> np.ndarray:
        batch = dynamic.as_tensor(np.ascontiguousarray(pixels), layout="HWC")
        return np.asarray(run(batch).cpu())

    if isinstance(image, PIL.Image.Image):
        pixels = np.asarray(image)
        out = made(pixels if pixels.ndim == 3 else pixels[..., None])
        return PIL.Image.fromarray(out[..., 0] if out.shape[2] == 1 else out)
    if image.device.type != "cpu":
        raise ArgumentValueError(
            f"`values` is 'dali', and the tensor is on {image.device}: with DALI's values, images "
            "have to be in the host's memory."
        )
    tensor = image.as_subclass(torch.Tensor)
    *lead, channels, height, width = tensor.shape
    images = tensor.reshape(-1, channels, height, width).movedim(1, -1).numpy()
    every = torch.from_numpy(np.stack([made(one) for one in images])).movedim(-1, 1).contiguous()
    result = every.reshape(*lead, *every.shape[1:])
    return result if type(image) is torch.Tensor else tv_tensors.wrap(result, like=image)


def _interpolation(interpolation: Any) -> Any:
    name = check_interpolation(interpolation).value
    if name not in _INTERPOLATIONS:
        raise ArgumentValueError(
            f"`interpolation` is {name!r}, which DALI does not have: with `values='dali'` it can "
            f"be {', '.join(map(repr, _INTERPOLATIONS))}."
        )
    return _INTERPOLATIONS[name]


def _size(image: Any) -> tuple[int, int]:
    if isinstance(image, PIL.Image.Image):
        return image.height, image.width
    height, width = image.shape[-2:]
    return int(height), int(width)


def resize(
    image: Any,
    size: Any,
    interpolation: Any = "bilinear",
    max_size: int | None = None,
    antialias: bool | None = True,
) -> Any:
    """Resize images."""
    check_size(size, max_size)
    if max_size is not None and np.isin(max_size, size):  # which torchvision refuses
        edges = resized_size(_size(image), size=size)
        edges = [min(n, int(max_size * n / max(edges))) for n in edges]
    else:
        edges = resized_size(_size(image), size=size, max_size=max_size)
    made = [float(n) for n in edges]
    kind, wide = _interpolation(interpolation), bool(antialias)
    return _by_image(
        image, lambda x: dynamic.resize(x, size=made, interp_type=kind, antialias=wide)
    )


def resized_crop(
    image: Any,
    top: int,
    left: int,
    height: int,
    width: int,
    size: Any,
    interpolation: Any = "bilinear",
    antialias: bool | None = True,
) -> Any:
    """Resize a window of images."""
    if isinstance(image, PIL.Image.Image):
        window = image.crop((left, top, left + width, top + height))
    else:
        window = image[..., top : top + height, left : left + width]
        if type(image) is not torch.Tensor:
            window = tv_tensors.wrap(window, like=image)
    return resize(window, size, interpolation, None, antialias)


def rgb_to_grayscale(image: Any, num_output_channels: int = 1) -> Any:
    """Grey of colours."""
    check_channels(num_output_channels)
    count = num_output_channels

    def run(x: Any) -> Any:
        if x.shape[-1] == 1:
            return x if count == 1 else _converted(x, types.GRAY, types.RGB)
        grey = _converted(x, types.RGB, types.GRAY)
        return grey if count == 1 else _converted(grey, types.GRAY, types.RGB)

    return _by_image(image, run)


def _converted(x: Any, image_type: Any, output_type: Any) -> Any:
    return dynamic.color_space_conversion(x, image_type=image_type, output_type=output_type)


def gaussian_blur(image: Any, kernel_size: Any, sigma: Any = None) -> Any:
    """Blur images."""
    sizes = [kernel_size] * 2 if isinstance(kernel_size, int) else [*kernel_size]
    sigmas = [n * 0.15 + 0.35 for n in sizes] if sigma is None else np.ravel(sigma).tolist()
    sigmas = sigmas * 2 if len(sigmas) == 1 else sigmas
    # DALI takes rows before columns, torchvision columns before rows.
    deviations = [float(s) for s in sigmas]
    return _by_image(image, lambda x: dynamic.gaussian_blur(x, window_size=sizes, sigma=deviations))


def twist(image: Any, params: dict[str, Any]) -> Any:
    """Change colours by what a `ColorJitter` has drawn, all at once."""
    names = ("brightness", "contrast", "saturation")
    numbers = {name: params[f"{name}_factor"] for name in names}
    given = {name: number for name, number in numbers.items() if number is not None}
    if params["hue_factor"] is not None:
        given["hue"] = params["hue_factor"] * _DEGREES
    return _by_image(image, lambda x: dynamic.color_twist(x, **given)) if given else image


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "gaussian_blur": gaussian_blur,
    "resize": resize,
    "resized_crop": resized_crop,
    "rgb_to_grayscale": rgb_to_grayscale,
    "to_grayscale": rgb_to_grayscale,
}


def dali_kernel(name: str, inpt: Any) -> Callable[..., Any] | None:
    """The function that has DALI's values, if they differ from torchvision's for this input."""
    return _FUNCTIONS.get(name) if kind_of(type(inpt)) else None
