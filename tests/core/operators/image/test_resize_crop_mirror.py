"""`resize_crop_mirror` is `resize`, `crop` and `flip`, to the bit."""

from __future__ import annotations

import numpy as np
import pytest

from headrace import types
from tests.support.run_operator import run_operator


def picture(*shape):
    return np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)


@pytest.mark.sweep(pairs=True)
@pytest.mark.parametrize("mirror", range(8))
@pytest.mark.parametrize(
    ("layout", "shape", "size"),
    [
        ("HWC", (30, 41, 3), (17, 50)),
        ("CHW", (3, 30, 41), (17, 50)),
        ("DHWC", (6, 30, 41, 2), (9, 17, 50)),
        ("FHWC", (2, 30, 41, 3), (17, 50)),
    ],
)
@pytest.mark.parametrize("interp_type", [types.INTERP_NN, types.INTERP_LINEAR])
def test_the_same_as_one_after_the_other(layout, shape, size, mirror, interp_type):
    data = picture(*shape)
    crop = {"crop": (5, 9, 23)[-len(size) :], "crop_pos_x": 0.3, "crop_pos_y": 0.8}
    out = run_operator(
        "resize_crop_mirror",
        data,
        layout=layout,
        size=size,
        mirror=mirror,
        interp_type=interp_type,
        **crop,
    )
    want = run_operator("resize", data, layout=layout, size=size, interp_type=interp_type)
    want = run_operator("crop", want, layout=layout, **crop)
    for bit, axis in ((1, "W"), (2, "H"), (4, "D")):
        if mirror & bit and axis in layout:
            want = np.flip(want, layout.index(axis))
    np.testing.assert_array_equal(out, want)


def test_outside_of_the_resized_image_its_border_is_repeated():
    data = picture(20, 20, 1)
    for interp_type in (types.INTERP_NN, types.INTERP_LINEAR):
        kwargs = {"size": (20, 20), "interp_type": interp_type}
        out = run_operator("resize_crop_mirror", data, layout="HWC", crop=(24, 20), **kwargs)
        np.testing.assert_array_equal(out, np.pad(data, ((2, 2), (0, 0), (0, 0)), "edge"))


def test_nothing_to_do():
    data = picture(20, 21, 3)
    assert run_operator("resize_crop_mirror", data, layout="HWC", size=(20, 21)) is data
    mirrored = run_operator("resize_crop_mirror", data, layout="HWC", size=(20, 21), mirror=1)
    np.testing.assert_array_equal(mirrored, data[:, ::-1])
