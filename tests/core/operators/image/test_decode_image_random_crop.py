from __future__ import annotations

import numpy as np
import pytest

from headrace.errors import ArgumentValueError
from tests.support.encoded_images import jpegs, png
from tests.support.lazy import lazy
from tests.support.run_operator import run_operator


def map_of_places(height=60, width=80):
    """A PNG whose pixels tell where they are."""
    rows, columns = np.mgrid[0:height, 0:width]
    return np.frombuffer(png(np.stack([rows, columns, rows * 0], -1), 8, 2), np.uint8)


def window(image):
    return int(image[0, 0, 0]), int(image[0, 0, 1]), *image.shape[:2]


def test_it_is_a_window_of_the_image():
    data = map_of_places()
    whole = run_operator("decoders.image", data)
    y, x, height, width = window(run_operator("decoders.image_random_crop", data))
    found = run_operator("decoders.image_random_crop", data)
    np.testing.assert_array_equal(found, whole[y : y + height, x : x + width])


def test_the_lazily_window_is_the_same():
    for data in (map_of_places(), np.frombuffer(jpegs()["jpeg-200x300"], np.uint8)):
        found = run_operator("decoders.image_random_crop", data)
        lazily = lazy("decoders.image_random_crop", data)
        assert lazily.shape == found.shape
        height, width, _ = found.shape
        np.testing.assert_array_equal(lazily.region(0, 0, height, width), found)


@pytest.mark.parametrize(
    ("args", "size"),
    [
        ({"random_area": (1.0, 1.0), "random_aspect_ratio": (0.1, 10.0)}, None),
        ({"random_area": (0.25, 0.25), "random_aspect_ratio": (1.0, 1.0)}, (35, 35)),
        ({"random_area": [0.25], "random_aspect_ratio": [1.0]}, (35, 35)),
        ({"num_attempts": 0}, (60, 80)),
        ({"num_attempts": 0, "random_aspect_ratio": (0.5, 1.0)}, (60, 60)),
    ],
)
def test_ranges(args, size):
    found = run_operator("decoders.image_random_crop", map_of_places(), **args)
    assert size is None or found.shape[:2] == size


@pytest.mark.parametrize(
    ("args", "reason"),
    [
        ({"random_area": (0.9, 0.1)}, "random_area"),
        ({"random_area": (-0.5, 0.1)}, "random_area"),
        ({"random_area": (0.1, 0.2, 0.3)}, "two values"),
        ({"random_aspect_ratio": (2.0, 1.0)}, "random_aspect_ratio"),
        ({"random_aspect_ratio": (0.0, 1.0)}, "random_aspect_ratio"),
        ({"random_aspect_ratio": (0.5, float("nan"))}, "finite"),
    ],
)
def test_ranges_that_cannot_be(args, reason):
    with pytest.raises(ArgumentValueError, match=reason):
        run_operator("decoders.image_random_crop", map_of_places(), **args)
