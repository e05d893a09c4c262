"""`fn.hue`, `fn.saturation`, `fn.hsv` and `fn.color_twist` against DALI."""

from __future__ import annotations

import numpy as np
import pytest

from headrace.errors import NotYetSupportedError, ShapeError
from tests.parity.support import assert_both_raise, assert_parity, run_graph

DALI_NAME = {
    "uint8": "UINT8",
    "int16": "INT16",
    "int32": "INT32",
    "float16": "FLOAT16",
    "float32": "FLOAT",
}
TYPES = tuple(DALI_NAME)
CASES = [
    ("hue", {}),
    ("hue", {"hue": 77.5}),
    ("hue", {"hue": -400.0}),
    ("hue", {"hue": 1e9}),
    ("saturation", {"saturation": 0.0}),
    ("saturation", {"saturation": 1.7}),
    ("saturation", {"saturation": -1.0}),
    ("hsv", {}),
    ("hsv", {"hue": 120.0, "saturation": 0.6, "value": 1.2}),
    ("hsv", {"value": -0.5}),
    ("color_twist", {}),
    ("color_twist", {"brightness": 0.5}),
    ("color_twist", {"contrast": 0.5}),
    ("color_twist", {"contrast": -1.5, "brightness": 0.3}),
    ("color_twist", {"hue": 33.0, "saturation": 1.3, "brightness": 0.8, "contrast": 1.2}),
    ("color_twist", {"brightness": 1e30, "saturation": 0.5}),
]


def numbers(dtype: str) -> np.ndarray:
    rng = np.random.default_rng(1)
    if dtype.startswith("float"):
        return ((rng.random((19, 17, 3), np.float32) - 0.4) * 500).astype(dtype)
    info = np.iinfo(dtype)
    few = rng.integers(max(info.min, -300), min(info.max, 300), (18, 17, 3))
    all_of_them = rng.integers(info.min, info.max, (1, 17, 3), endpoint=True)
    return np.concatenate([few, all_of_them]).astype(dtype)


def exact(graph, *feeds, **options):
    assert_parity(graph, *feeds, max_levels=0, relative=0, absolute=0, **options)


@pytest.mark.sweep
@pytest.mark.parametrize("source", TYPES)
@pytest.mark.parametrize("target", TYPES)
def test_element_types(source, target):
    # DALI does not round halves to even on the way to float16.
    nearly = {"relative": 1e-3, "absolute": 1e-6} if target == "float16" else {}
    (assert_parity if nearly else exact)(
        lambda lib, x: tuple(
            getattr(lib.fn, name)(x, dtype=getattr(lib.types, DALI_NAME[target]), **arguments)
            for name, arguments in CASES
        ),
        [numbers(source)],
        layouts="HWC",
        **nearly,
    )


@pytest.mark.parametrize("name", ["hue", "saturation", "hsv", "color_twist"])
@pytest.mark.parametrize("dtype", ["int16", "float32"])
def test_output_type_when_not_given(name, dtype):
    exact(lambda lib, x: getattr(lib.fn, name)(x), [numbers(dtype)], layouts="HWC")


def test_all_bytes():
    pixels = np.stack(
        np.meshgrid(np.arange(256), np.arange(256), np.arange(0, 256, 17), indexing="ij"), -1
    )
    exact(
        lambda lib, x: (
            lib.fn.color_twist(x, hue=-17.0, saturation=0.7, brightness=1.1, contrast=0.9),
            lib.fn.color_twist(x, brightness=0.5),
            lib.fn.hsv(x, hue=200.0, saturation=0.3, value=1.5),
            lib.fn.saturation(x, saturation=0.5),
        ),
        [pixels.reshape(256, -1, 3).astype(np.uint8)],
        layouts="HWC",
    )


def test_values_for_each_sample_of_a_ragged_batch():
    rng = np.random.default_rng(2)
    images = [rng.integers(0, 256, (k, 40 - 3 * k, 3)).astype(np.uint8) for k in range(1, 9)]
    angles = [np.array(v, np.float32) for v in rng.uniform(-400, 400, 8)]
    draws = [[np.array(v, np.float32) for v in rng.uniform(0, 2, 8)] for _ in range(3)]
    exact(
        lambda lib, x, h, s, b, c: (
            lib.fn.color_twist(x, hue=h, saturation=s, brightness=b, contrast=c),
            lib.fn.hsv(x, hue=h, saturation=s, value=b),
            lib.fn.hue(x, hue=h),
            lib.fn.saturation(x, saturation=s),
            lib.fn.color_twist(x, hue=h, brightness=1.5, dtype=lib.types.FLOAT),
        ),
        images,
        angles,
        *draws,
        layouts=["HWC", "", "", "", ""],
    )


@pytest.mark.parametrize("shape", [(1, 1, 3), (1, 16, 3), (15, 1, 3), (2, 17, 3), (1, 33, 3)])
def test_small_images(shape):
    rng = np.random.default_rng(7)
    exact(
        lambda lib, x: lib.fn.color_twist(x, hue=50.0, contrast=1.2),
        [rng.integers(0, 256, shape).astype(np.uint8)],
        layouts="HWC",
    )


@pytest.mark.parametrize("shape", [(0, 4, 3), (4, 0, 3), (0, 0, 3)])
def test_empty_images(shape):
    exact(lambda lib, x: lib.fn.hsv(x, hue=9.0), [np.ones(shape, np.uint8)], layouts="HWC")


@pytest.mark.parametrize("layout", ["DHWC", "FHWC", ""])
def test_four_axes(layout):
    images = np.random.default_rng(3).integers(0, 256, (3, 5, 6, 3)).astype(np.uint8)
    exact(
        lambda lib, x: lib.fn.color_twist(x, hue=40.0, brightness=1.2, contrast=0.7),
        [images, images[:1], images[:0]],
        layouts=layout,
    )


def test_three_axes_without_a_layout():
    exact(lambda lib, x: lib.fn.hue(x, hue=40.0), [numbers("uint8")])


def test_values_for_each_frame():
    clip = np.random.default_rng(4).integers(0, 256, (3, 5, 6, 3)).astype(np.uint8)
    values = np.array([0.5, 1, 1.5], np.float32)
    exact(
        lambda lib, x, v: (
            lib.fn.color_twist(x, saturation=lib.fn.per_frame(v), contrast=1.1),
            lib.fn.hsv(x, value=lib.fn.per_frame(v)),
            lib.fn.hue(x, hue=v),
        ),
        [clip],
        [values],
        layouts=["FHWC", "F"],
    )


def test_views_are_read_in_place():
    exact(
        lambda lib, x: tuple(
            lib.fn.color_twist(
                lib.fn.crop(lib.fn.flip(x, horizontal=h, vertical=v), crop=(9, 16)), hue=50.0
            )
            for h in (0, 1)
            for v in (0, 1)
        ),
        [numbers("uint8"), numbers("uint8")[::-1].copy()],
        layouts="HWC",
    )


@pytest.mark.parametrize("name", ["hue", "saturation", "color_twist"])
def test_numbers_that_are_none(name):
    argument = "hue" if name == "hue" else "saturation"
    exact(
        lambda lib, x: getattr(lib.fn, name)(x, **{argument: float("nan")}),
        [numbers("uint8")],
        layouts="HWC",
    )


@pytest.mark.parametrize("dtype", ["int8", "uint16", "uint32", "int64", "float64", "bool"])
def test_other_element_types_are_refused(dtype):
    assert_both_raise(
        lambda lib, x: lib.fn.hsv(x), [np.ones((3, 4, 3), dtype)], layouts="HWC", match=r"hsv"
    )
    assert_both_raise(
        lambda lib, x: lib.fn.hue(
            x, dtype=getattr(lib.types, {"float64": "FLOAT64"}.get(dtype, dtype.upper()))
        ),
        [np.ones((3, 4, 3), np.uint8)],
        layouts="HWC",
        match="`dtype`",
    )


@pytest.mark.parametrize(
    ("layout", "ndim"), [("CHW", 3), ("HW", 2), ("WHC", 3), ("FCHW", 4), ("", 2)]
)
def test_other_layouts_are_refused(layout, ndim):
    assert_both_raise(
        lambda lib, x: lib.fn.color_twist(x), [np.ones((3,) * ndim, np.uint8)], layouts=layout
    )


# DALI reads such data as if it were pixels of three channels, and beyond its end.
@pytest.mark.parametrize("channels", [0, 1, 2, 4])
def test_other_numbers_of_channels_are_refused(channels):
    with pytest.raises(ShapeError, match="three channels"):
        run_graph(
            "headrace",
            lambda lib, x: lib.fn.hue(x),
            [np.ones((3, 4, channels), np.uint8)],
            layouts="HWC",
        )


# DALI takes it and does as for RGB.
@pytest.mark.parametrize("space", ["BGR", "GRAY", "YCbCr", "ANY_DATA"])
def test_other_colour_spaces_are_refused(space):
    with pytest.raises(NotYetSupportedError, match="image_type"):
        run_graph(
            "headrace",
            lambda lib, x: lib.fn.hue(x, image_type=getattr(lib.types, space)),
            [numbers("uint8")],
            layouts="HWC",
        )
    exact(lambda lib, x: lib.fn.hue(x, image_type=lib.types.RGB), [numbers("uint8")], layouts="HWC")
