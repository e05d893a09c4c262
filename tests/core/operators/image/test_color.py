"""`hue`, `saturation`, `hsv` and `color_twist`."""

from __future__ import annotations

import numpy as np
import pytest

from headrace.types import DALIDataType
from tests.support.run_operator import run_operator

GREY = np.full((3, 4, 3), 90, np.uint8)


def noise(*shape, dtype="uint8"):
    return np.random.default_rng(0).integers(0, 256, shape).astype(dtype)


def twist(data, **arguments):
    return run_operator("color_twist", data, layout="HWC", **arguments)


@pytest.mark.parametrize("name", ["hue", "saturation", "hsv", "color_twist"])
def test_bytes_stay_without_arguments(name):
    image = noise(9, 8, 3)
    np.testing.assert_array_equal(run_operator(name, image, layout="HWC"), image)


def test_grey_has_no_hue():
    out = run_operator("hue", GREY, layout="HWC", hue=120.0)
    np.testing.assert_allclose(out, GREY, atol=1)


def test_three_thirds_of_a_turn():
    image = noise(9, 8, 3).astype(np.float32)
    out = image
    for _ in range(3):
        out = run_operator("hue", out, layout="HWC", hue=120.0)
    np.testing.assert_allclose(out, image, atol=1e-3)


def test_saturation_scales_the_distance_from_grey():
    image = noise(9, 8, 3).astype(np.float32)
    grey = run_operator("saturation", image, layout="HWC", saturation=0.0)
    luma = image @ np.float32([0.299, 0.587, 0.114])
    np.testing.assert_allclose(grey, np.repeat(luma[..., None], 3, -1), rtol=3e-3)
    half = run_operator("saturation", image, layout="HWC", saturation=0.5)
    np.testing.assert_allclose(half, (image + grey) / 2, atol=1e-3)


@pytest.mark.parametrize(("dtype", "middle"), [("uint8", 128), ("int16", 128), ("float32", 0.5)])
def test_contrast_leaves_the_middle_alone(dtype, middle):
    image = np.full((3, 4, 3), middle, dtype)
    np.testing.assert_array_equal(twist(image, contrast=0.2), image)
    np.testing.assert_array_equal(twist(image, contrast=0.2, brightness=0.5), image / 2)


@pytest.mark.parametrize("dtype", ["uint8", "int16", "int32", "float16", "float32"])
def test_every_alignment_and_stride(dtype):
    whole = noise(40, 53, 4, dtype=dtype)
    views = [
        whole[..., :3],
        whole[..., 2::-1],
        whole[5:20, 3:40, :3],
        whole[::-1, ::2, 1:],
        np.ascontiguousarray(whole[..., :3])[:, ::-1],
        np.ascontiguousarray(whole[..., :3])[3:, 20:1:-1],
        whole[..., :3].transpose(1, 0, 2),
    ]
    for view in views:
        for target in (DALIDataType.UINT8, DALIDataType.INT32, DALIDataType.FLOAT16):
            np.testing.assert_array_equal(
                twist(view, hue=30.0, dtype=target),
                twist(np.ascontiguousarray(view), hue=30.0, dtype=target),
                strict=True,
            )


def test_volumes_of_views():
    volume = noise(4, 9, 20, 3)
    view = volume[1:, ::2, 1:19]
    out = run_operator("hsv", view, layout="DHWC", hue=30.0)
    apart = [run_operator("hsv", part.copy(), layout="HWC", hue=30.0) for part in view]
    np.testing.assert_array_equal(out, np.stack(apart))


def test_without_the_processors_float16(monkeypatch):
    from headrace.kernels.cpu import half

    image = noise(9, 20, 3)
    expected = twist(image, hue=30.0, dtype=DALIDataType.FLOAT16)
    monkeypatch.setattr(half, "available", lambda: False)
    np.testing.assert_array_equal(twist(image, hue=30.0, dtype=DALIDataType.FLOAT16), expected)
