"""Compare what the GPU's decoders make with what the CPU's make."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from headrace.kernels.gpu.decode.batch import begin_decoding
from headrace.tensors.gpu.batch import DeviceBatch
from headrace.tensors.gpu.queue import Queue
from headrace.tensors.gpu.runtime import get_runtime
from tests.support.encoded_images import everything
from tests.support.gpu.run_operator import run_cpu_operator_on_batch, run_gpu_operator
from tests.support.gpu.runtime import EmulatedRuntime

JPEG_MOST_LEVELS = 3
JPEG_MEAN_LEVELS = 0.3
"""How far a GPU's inverse transform and colour conversion may be from libjpeg-turbo's, of 255.

Measured on an H200 with nvJPEG 13.0, on images of 1 to 65 rows and columns: JPEG engines differ by
at most 1, in the mean of an image by 0.006; the hybrid decoder by 3 and, in tiny images, 0.25.
"""


def decode_batch(queue: Queue, *args: Any, **more: Any) -> tuple[DeviceBatch, dict[int, Exception]]:
    """`begin_decoding` and its end: the batch, and the errors of samples by their places."""
    out, finish = begin_decoding(queue, *args, **more)
    return out, finish(queue)


def encoded(images: dict[str, bytes]) -> list[np.ndarray]:
    """The images as the engine hands them out."""
    return [np.frombuffer(data, np.uint8) for data in images.values()]


def decodable(operator: str = "decoders.image", **args: Any) -> dict[str, bytes]:
    """All kinds of images that the CPU decodes with these arguments."""
    found = {}
    for name, data in everything().items():
        try:
            run_cpu_operator_on_batch(operator, [np.frombuffer(data, np.uint8)], **args)
        except RuntimeError:
            continue
        found[name] = data
    return found


def check_like_cpu(
    operator: str,
    images: dict[str, bytes],
    *inputs: list[np.ndarray],
    ulps: int = 0,
    **args: Any,
) -> list[np.ndarray]:
    """Check that the GPU's pixels are the CPU's; on a real GPU those of JPEGs nearly.

    A real GPU is asked to interpolate chroma, as the CPU does.

    `ulps`: by how many float32 steps of 1.0 pixels may differ that are not JPEG's, in parts of full
    intensity.
    """
    rows = encoded(images)
    want = run_cpu_operator_on_batch(operator, rows, *inputs, **args)
    got = run_gpu_operator(operator, rows, *inputs, **{"jpeg_fancy_upsampling": True, **args})
    exact = isinstance(get_runtime(0), EmulatedRuntime)
    for name, ours, theirs in zip(images, got, want, strict=True):
        assert ours.shape == theirs.shape, name
        assert ours.dtype == theirs.dtype
        check_pixels(name, ours, theirs, exact=exact or not name.startswith("jpeg"), ulps=ulps)
    return got


def check_pixels(
    name: str, got: np.ndarray, want: np.ndarray, *, exact: bool, ulps: int = 0
) -> None:
    """Check the pixels of one image."""
    full = 1.0 if got.dtype.kind == "f" else float(np.iinfo(got.dtype).max)
    difference = np.abs(got.astype(np.float64) - want.astype(np.float64)) / full
    if exact:
        assert difference.max() <= ulps * np.finfo(np.float32).eps, name
        return
    levels = 255 * difference
    # Values are rounded to other types and to YCbCr.
    rounding = max(255 / full, 0.01) if got.dtype.kind != "f" else 0.01
    assert levels.max() <= JPEG_MOST_LEVELS + rounding, name
    assert levels.mean() <= JPEG_MEAN_LEVELS, name


def without(images: dict[str, bytes], parts: Iterable[str]) -> dict[str, bytes]:
    """The images whose names contain none of `parts`."""
    parts = tuple(parts)
    return {name: data for name, data in images.items() if not any(p in name for p in parts)}
