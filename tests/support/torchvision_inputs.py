"""Inputs of every kind that torchvision's transforms take, and how results are compared."""

from __future__ import annotations

from typing import Any

import numpy as np
import PIL.Image
import torch
from torch.utils._pytree import tree_flatten

from tests.support.torchvision_beside_cpu import import_torchvision

import_torchvision()

from torchvision import tv_tensors  # noqa: E402

HEIGHT, WIDTH = 37, 45
LEVELS = 1
"""Levels by which values of uint8 may differ: torchvision's own tolerance of PIL and tensors."""
OUTLIERS = 0.001
"""The part of all values that may differ by more."""


def pixels(channels: int = 3, *, seed: int = 0, height: int = HEIGHT, width: int = WIDTH) -> Any:
    """An image with slopes, edges, noise and its extreme values, uint8 HWC."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[:height, :width]
    waves = [120 + 100 * np.sin(x / (3 + c) + c) * np.cos(y / (5 - c)) for c in range(channels)]
    image = np.stack(waves, -1) + rng.normal(0, 8, (height, width, channels))
    image[height // 3 : height // 2, width // 4 : width // 2] = rng.integers(0, 256, channels)
    image[-3:, :4], image[:3, -4:] = 255, 0
    image[5:8] = image[5:8].mean(-1, keepdims=True)  # grey: without a hue
    return image.clip(0, 255).astype(np.uint8)


def _tensor(channels: int = 3, **options: Any) -> torch.Tensor:
    return torch.from_numpy(pixels(channels, **options)).permute(2, 0, 1).contiguous()


def _batch(*lead: int) -> torch.Tensor:
    count = int(np.prod(lead))
    return torch.stack([_tensor(seed=s) for s in range(count)]).reshape(*lead, 3, HEIGHT, WIDTH)


def pil_images() -> dict[str, Any]:
    """PIL images of every mode."""
    rgb = PIL.Image.fromarray(pixels())
    wide = PIL.Image.fromarray(pixels(1)[..., 0].astype(np.uint16) * 200)
    return {
        "pil RGB": rgb,
        "pil L": rgb.convert("L"),
        "pil RGBA": PIL.Image.fromarray(pixels(4)),
        "pil LA": PIL.Image.fromarray(pixels(2)),
        "pil P": rgb.convert("P"),
        "pil 1": rgb.convert("1"),
        "pil I;16": wide,
        "pil F": rgb.convert("F"),
    }


def tensors() -> dict[str, Any]:
    """Tensors and tv_tensors that are images."""
    tensor = _tensor()
    return {
        "u8": tensor,
        "u8 grey": _tensor(1),
        "u8 one pixel": tensor[:, :1, :1].clone(),
        "u8 of HWC": torch.from_numpy(pixels()).permute(2, 0, 1),
        "u8 window": torch.from_numpy(pixels(height=50)).permute(2, 0, 1)[:, 4:41, 2:40],
        "u8 batch": _batch(3),
        "u8 batch of HWC": _batch(2).contiguous(memory_format=torch.channels_last),
        "u8 clips": _batch(2, 2),
        "u8 two": _tensor(2),
        "f32": tensor.float() / 255,
        "f32 batch": _batch(2).float() / 255,
        "f32 of HWC": torch.from_numpy(pixels()).permute(2, 0, 1).float() / 255,
        "f64": tensor.double() / 255,
        "f16": (tensor.float() / 255).half(),
        "i16": tensor.to(torch.int16) * 100,
        "i64": tensor.to(torch.int64),
        "empty": tensor[:, :0],
        "no images": tensor[None][:0],
        "Image": tv_tensors.Image(tensor),
        "Video": tv_tensors.Video(_batch(2)),
        "gradient": (tensor.float() / 255).requires_grad_(),
    }


def annotations() -> dict[str, Any]:
    """Masks, boxes and key points."""
    corners = torch.tensor([[3, 4, 20, 30], [0, 0, 44, 36], [10, 12, 11, 14]])
    size = (HEIGHT, WIDTH)
    found: dict[str, Any] = {
        "Mask": tv_tensors.Mask(_tensor(1)[0] // 64),
        "Masks": tv_tensors.Mask(_tensor(2) // 64),
        "KeyPoints": tv_tensors.KeyPoints(torch.tensor([[3.0, 5.0], [44, 36]]), canvas_size=size),
    }
    for form in tv_tensors.BoundingBoxFormat:
        count = {"XYWHR": 5, "CXCYWHR": 5, "XYXYXYXY": 8}.get(form.name, 4)
        if count == 8:
            boxes = torch.tensor([[3.0, 4, 20, 4, 20, 30, 3, 30]])
        elif count == 5:
            boxes = torch.tensor([[10.0, 12, 9, 7, 30], [20, 20, 8, 4, -75]])
        else:
            boxes = corners.float()
        found[f"boxes {form.name}"] = tv_tensors.BoundingBoxes(boxes, format=form, canvas_size=size)
    return found


def outcome(function: Any, *args: Any) -> Any:
    """What a call returns, or the class of its error."""
    try:
        return function(*args)
    except Exception as error:
        return type(error)


def differences(
    ours: Any, theirs: Any, *, float_tolerance: float = 2e-5, level: float | None = None
) -> list[str]:
    """Say in words in what two results are not the same; `level` is that of bytes made floats."""
    left, left_spec = tree_flatten(ours)
    right, right_spec = tree_flatten(theirs)
    if left_spec != right_spec:
        return [f"structure {left_spec} != {right_spec}"]
    found = []
    for a, b in zip(left, right, strict=True):
        if isinstance(b, PIL.Image.Image):
            if not isinstance(a, PIL.Image.Image) or (a.mode, a.size) != (b.mode, b.size):
                found.append(f"{a!r} != {b!r}")
                continue
            a, b = np.asarray(a), np.asarray(b)
        elif isinstance(b, torch.Tensor):
            if type(a) is not type(b) or a.dtype != b.dtype or a.device != b.device:
                found.append(f"{type(a)} {a.dtype} != {type(b)} {b.dtype}")
                continue
            if isinstance(b, tv_tensors.TVTensor) and vars(a) != vars(b):
                found.append(f"{vars(a)} != {vars(b)}")
            if a.requires_grad != b.requires_grad:
                found.append("one has a gradient")
            a, b = (t.detach().as_subclass(torch.Tensor).numpy() for t in (a, b))
        elif a is not b and a != b:
            found.append(f"{a!r} != {b!r}")
            continue
        else:
            continue
        if a.shape != b.shape:
            found.append(f"shape {a.shape} != {b.shape}")
        elif b.size:
            apart = np.abs(a.astype(np.float64) - b.astype(np.float64))
            if b.dtype.kind == "f" and level is not None:
                if (apart > level * LEVELS * 1.01).mean() > OUTLIERS:
                    found.append(f"by {apart.max() / level:.3g} levels")
            elif b.dtype.kind == "f":
                limit = max(float_tolerance, 2e-3 if b.dtype == np.float16 else 0)
                if not apart.max() <= limit * max(1.0, float(np.abs(b).max())):
                    found.append(f"by {apart.max():.3g}")
            elif (apart > LEVELS).mean() > OUTLIERS:
                found.append(f"{(apart > LEVELS).mean():.2%} by up to {apart.max():.0f}")
    return found
