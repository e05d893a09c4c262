from __future__ import annotations

import numpy as np
import pytest

from headrace.types import DALIDataType
from tests.support.run_operator import run_operator


def adjust(data, **arguments):
    return run_operator("brightness_contrast", data, layout="HWC", **arguments)


def noise(*shape, dtype="uint8"):
    return np.random.default_rng(0).integers(0, 256, shape).astype(dtype)


def test_formula():
    image = noise(9, 8, 3)
    expected = 0.1 * 255 + 1.2 * (100 + 0.7 * (image.astype(float) - 100))
    out = adjust(image, brightness=1.2, contrast=0.7, contrast_center=100, brightness_shift=0.1)
    np.testing.assert_allclose(out, np.clip(expected, 0, 255), atol=0.501)


def test_without_an_adjustment_the_input_is_passed_on():
    image = noise(9, 8, 3)
    assert adjust(image) is image
    assert adjust(image, dtype=DALIDataType.FLOAT).dtype == np.float32


@pytest.mark.parametrize("dtype", ["uint8", "int16", "int32", "float32"])
def test_not_a_number(dtype):
    data = np.array([[[np.nan], [np.inf], [-np.inf], [2.5], [-2.5]]], np.float32)
    out = adjust(data, dtype=getattr(DALIDataType, {"float32": "FLOAT"}.get(dtype, dtype.upper())))
    if dtype == "float32":
        np.testing.assert_array_equal(out, data)
        return
    info = np.iinfo(dtype)
    nan = info.min if dtype == "int32" else 0
    expected = [nan, info.max, info.min, 3, max(-3, info.min)]
    np.testing.assert_array_equal(out.ravel(), expected)


def test_views_are_read_in_place():
    image = noise(40, 50, 3)
    for view in (image[5:20, 3:40], image[::-1], image[:, ::-1], image.transpose(1, 0, 2)):
        np.testing.assert_array_equal(
            adjust(view, brightness=1.3), adjust(np.ascontiguousarray(view), brightness=1.3)
        )


@pytest.mark.parametrize("shape", [(0, 4, 3), (4, 4, 0)])
def test_empty_images(shape):
    assert adjust(np.zeros(shape, np.uint8), brightness=2.0).shape == shape
