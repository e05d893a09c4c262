"""Transforms that an `ImageProgram` can take up, and how."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from headrace.experimental.torchvision._program import Filter, ImageProgram
from headrace.experimental.torchvision._resize import (
    FILTERS,
    PIL_FILTERS,
    check_interpolation,
    resized_size,
)

Step = Callable[[ImageProgram, Any, dict[str, Any]], bool]
"""Takes a transform and its parameters up; false if it cannot."""

_COLOURS = ("brightness", "contrast", "saturation", "hue")


def _filter(program: ImageProgram, step: Any) -> Filter | None:
    name = check_interpolation(step.interpolation).value
    if program.is_pil:
        # torchvision warns of an antialias that Pillow does not heed.
        kind = None if step.antialias is False else PIL_FILTERS.get(name)
        return None if kind is None else Filter(kind, True)
    kind = FILTERS.get(name)
    return None if kind is None else Filter(kind, bool(step.antialias))


def _resize(program: ImageProgram, step: Any, params: dict[str, Any]) -> bool:
    size = resized_size(program.size, size=step.size, max_size=step.max_size)
    return program.resize((size[0], size[1]), _filter(program, step))


def _random_resized_crop(program: ImageProgram, step: Any, params: dict[str, Any]) -> bool:
    height, width = step.size
    filter = _filter(program, step)
    window = params["top"], params["left"], params["height"], params["width"]
    if program.is_resized or (filter is None and (height, width) != window[2:]):
        return False
    return program.crop(*window) and program.resize((height, width), filter)


def _center_crop(program: ImageProgram, step: Any, params: dict[str, Any]) -> bool:
    height, width = step.size
    rows, columns = program.size
    if height > rows or width > columns:
        return False
    top, left = round((rows - height) / 2.0), round((columns - width) / 2.0)
    return program.crop(int(top), int(left), height, width)


def _random_crop(program: ImageProgram, step: Any, params: dict[str, Any]) -> bool:
    if params["needs_pad"]:
        return False
    if not params["needs_crop"]:
        return True
    return program.crop(params["top"], params["left"], params["height"], params["width"])


def _jitter(program: ImageProgram, step: Any, params: dict[str, Any]) -> bool:
    if program.is_scaled or (program.is_pil and not program.becomes_tensor):
        return False
    for which in params["fn_idx"].tolist():
        factor = params[f"{_COLOURS[which]}_factor"]
        if factor is not None:
            program.colour(_COLOURS[which], factor)
    return True


def _grey(program: ImageProgram, step: Any, params: dict[str, Any]) -> bool:
    count = params.get("num_input_channels", getattr(step, "num_output_channels", 1))
    if count != program.channels or (program.is_pil and not program.becomes_tensor):
        return False
    return program.is_image and program.colour("grey", None)


def _to_image(program: ImageProgram, step: Any, params: dict[str, Any]) -> bool:
    return (not program.is_pil and not program.is_pure) or program.to_tensor(pure=False)


def _pil_to_tensor(program: ImageProgram, step: Any, params: dict[str, Any]) -> bool:
    return not program.is_pil or program.to_tensor(pure=True)


def _to_float_tensor(program: ImageProgram, step: Any, params: dict[str, Any]) -> bool:
    return not program.is_pil or (program.to_tensor(pure=True) and program.scale())


def _to_dtype(program: ImageProgram, step: Any, params: dict[str, Any]) -> bool:
    if program.is_pil:
        return True  # PIL images are passed through
    dtype = step.dtype
    if isinstance(dtype, dict):
        return False
    if dtype == (torch.float32 if program.is_scaled else torch.uint8):
        return True
    return dtype == torch.float32 and getattr(step, "scale", True) and program.scale()


def _convert_dtype(program: ImageProgram, step: Any, params: dict[str, Any]) -> bool:
    return not program.is_pil and _to_dtype(program, step, params)


def _normalize(program: ImageProgram, step: Any, params: dict[str, Any]) -> bool:
    return program.normalize(step.mean, step.std)


STEPS: dict[str, Step] = {
    "CenterCrop": _center_crop,
    "ColorJitter": _jitter,
    "ConvertImageDtype": _convert_dtype,
    "Grayscale": _grey,
    "Identity": lambda program, step, params: True,
    "Normalize": _normalize,
    "PILToTensor": _pil_to_tensor,
    "RandomCrop": _random_crop,
    "RandomGrayscale": _grey,
    "RandomHorizontalFlip": lambda program, step, params: program.flip(across=True),
    "RandomResizedCrop": _random_resized_crop,
    "RandomVerticalFlip": lambda program, step, params: program.flip(down=True),
    "Resize": _resize,
    "ToDtype": _to_dtype,
    "ToImage": _to_image,
    "ToPureTensor": lambda program, step, params: program.is_pil or program.to_tensor(pure=True),
    "ToTensor": _to_float_tensor,
}
"""By the name of the transform's class."""

MAKES_TENSORS = frozenset({"PILToTensor", "ToImage", "ToTensor"})
