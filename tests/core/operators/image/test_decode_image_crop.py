from __future__ import annotations

import numpy as np
import pytest

from headrace.errors import (
    ArgumentValueError,
    BadSampleError,
    HeadraceError,
    OutOfRangeError,
    UsageError,
)
from headrace.types import DALIDataType, DALIImageType
from tests.support.encoded_images import everything, jpegs, pngs
from tests.support.lazy import lazy
from tests.support.run_operator import run_operator


def encoded(name):
    return np.frombuffer(everything()[name], np.uint8)


def crop(name, **args):
    return run_operator("decoders.image_crop", encoded(name), **args)


@pytest.mark.sweep
@pytest.mark.parametrize(
    "name", ["jpeg-200x300", "jpeg-exif6", "jpeg-cmyk", "png-rgb8", "tiff-rgb-raw", "webp-lossy"]
)
@pytest.mark.parametrize(
    "args",
    [
        {"crop": (10, 20)},
        {"crop": (10, 20), "crop_pos_x": 0.0, "crop_pos_y": 1.0},
        {"crop_h": 10.7, "crop_w": 20.2, "crop_pos_x": 0.3, "rounding": "truncate"},
        {"crop": (0, 12)},
        {"crop": (5, 10, 20), "crop_pos_z": 0.3},
        {"crop_d": 3, "crop_h": 10, "crop_w": 20},
        {},
    ],
)
def test_it_is_decoding_and_cropping(name, args):
    whole = run_operator("decoders.image", encoded(name))
    expected = run_operator("crop", whole, layout="HWC", **args)
    np.testing.assert_array_equal(crop(name, **args), expected)
    image = lazy("decoders.image_crop", encoded(name), **args)
    height, width, _ = image.shape
    assert image.shape == expected.shape
    np.testing.assert_array_equal(image.region(0, 0, height, width), expected)
    np.testing.assert_array_equal(image.region(1, 2, height, width - 1), expected[1:, 2:-1])


def test_arguments_of_a_sample():
    whole = run_operator("decoders.image", encoded("jpeg-200x300"))
    found = crop(
        "jpeg-200x300",
        crop=np.array([30, 40], np.float32),
        crop_pos_x=np.array(0.25, np.float32),
    )
    np.testing.assert_array_equal(found, whole[85:115, 65:105])


def test_colours_and_types():
    args = {"output_type": DALIImageType.GRAY, "dtype": DALIDataType.FLOAT}
    whole = run_operator("decoders.image", encoded("png-rgb16"), **args)
    found = crop("png-rgb16", crop=(7, 9), crop_pos_x=0.0, crop_pos_y=0.0, **args)
    np.testing.assert_array_equal(found, whole[:7, :9])


@pytest.mark.parametrize(
    ("args", "error", "reason"),
    [
        ({"crop": (100, 20)}, OutOfRangeError, "-32..68, 17..37 is not valid"),
        ({"crop": (10, 20), "crop_pos_x": 1.5}, ArgumentValueError, "crop_pos_x"),
        ({"crop_h": 10}, UsageError, "crop_w"),
        ({"crop": (10, 20), "crop_h": 3, "crop_w": 3}, UsageError, "crop"),
        ({"crop": 10.0}, ArgumentValueError, "crop"),
    ],
)
def test_errors(args, error, reason):
    with pytest.raises(error, match=reason):
        crop("jpeg-4:2:0", **args)
    with pytest.raises(HeadraceError):
        lazy("decoders.image_crop", encoded("jpeg-4:2:0"), **args)


# image_slice

ABSOLUTE = {"normalized_anchor": False, "normalized_shape": False}


@pytest.mark.sweep
@pytest.mark.parametrize("name", ["jpeg-200x300", "jpeg-exif8", "png-rgb8"])
@pytest.mark.parametrize(
    "args",
    [
        {"start": (5, 4), "end": (20, 30)},
        {"start": (5, 4), "shape": (9, 8)},
        {"rel_start": (0.2, 0.3), "rel_end": (0.7, 0.8)},
        {"rel_start": (0.2, 0.3), "rel_shape": (0.3, 0.4)},
        {"rel_start": (0.2, 0.3), "shape": (3, 4)},
        {"start": (5, 4), "rel_end": (0.9, 1.0)},
        {"start": (5, 4)},
        {"end": (5, 4)},
        {"start": (5,), "end": (8,), "axes": [0]},
        {"start": (5, 6), "end": (8, 9), "axis_names": "HW"},
    ],
)
def test_it_is_decoding_and_slicing(name, args):
    whole = run_operator("decoders.image", encoded(name))
    expected = run_operator("slice", whole, layout="HWC", **args)
    found = run_operator("decoders.image_slice", encoded(name), **args)
    np.testing.assert_array_equal(found, expected)
    image = lazy("decoders.image_slice", encoded(name), **args)
    height, width, _ = image.shape
    np.testing.assert_array_equal(image.region(0, 0, height, width), expected)


@pytest.mark.parametrize(
    ("anchor", "shape", "args", "expected"),
    [
        ([5, 6], [7, 8], {}, np.s_[6:14, 5:12]),
        ([5, 6], [7, 8], {"axis_names": "HW"}, np.s_[5:12, 6:14]),
        ([0.25, 0.5], [0.5, 0.25], {}, np.s_[100:150, 75:225]),
        (
            [30.0, 20.0],
            [7.0, 8.0],
            {"normalized_anchor": False, "normalized_shape": False},
            np.s_[20:28, 30:37],
        ),
        ([0.1, 0.1], [30.0, 20.0], {"normalized_shape": False}, np.s_[20:40, 30:60]),
    ],
)
def test_positional_windows(anchor, shape, args, expected):
    kind = np.float32 if isinstance(anchor[0], float) else np.int32
    whole = run_operator("decoders.image", encoded("jpeg-200x300"))
    found = run_operator(
        "decoders.image_slice",
        encoded("jpeg-200x300"),
        np.array(anchor, kind),
        np.array(shape, kind),
        **args,
    )
    np.testing.assert_array_equal(found, whole[expected])


@pytest.mark.parametrize(
    ("args", "reason"),
    [
        ({"start": (0, 0), "end": (100, 20)}, "is not valid for image"),
        ({"start": (-1, 0), "end": (10, 20)}, "is not valid for image"),
        ({"start": (5, 5), "end": (5, 20)}, "empty"),
        ({"start": (5, 5), "shape": (0, 20)}, "empty"),
        ({"start": (5,), "end": (8,), "axes": [2]}, "axes"),
        ({"start": (5, 0), "end": (8, 1), "axis_names": "HC"}, "axis_names"),
        ({}, "named arguments"),
    ],
)
def test_slice_errors(args, reason):
    with pytest.raises(HeadraceError, match=reason):
        run_operator("decoders.image_slice", encoded("jpeg-4:2:0"), **args)


def test_a_window_decodes_no_more_than_it_needs():
    # The lower half of the file is gone; the upper half is still there.
    data = jpegs()["jpeg-200x300"]
    cut = np.frombuffer(data[: int(len(data) * 0.6)], np.uint8)
    whole = run_operator("decoders.image", encoded("jpeg-200x300"))
    pytest.importorskip("nvidia.nvimgcodec")
    # Images of other sizes and colours, and one that fails, leave nothing behind in the decoder.
    for rows, color in ((10, "GRAY"), (200, "RGB"), (50, "BGR")):
        args = {"crop": (rows, 100), "crop_pos_y": 0.0, "output_type": DALIImageType[color]}
        if rows == 200:
            with pytest.raises(BadSampleError, match="ends early"):
                run_operator("decoders.image_crop", cut, **args)
        else:
            run_operator("decoders.image_crop", cut, **args)
        found = run_operator("decoders.image_crop", cut, crop=(50, 100), crop_pos_y=0.0)
        np.testing.assert_array_equal(found, whole[:50, 100:200])


def test_png_window_of_one_pixel():
    whole = run_operator("decoders.image", np.frombuffer(pngs()["png-rgb8"], np.uint8))
    found = crop("png-rgb8", crop=(1, 1), crop_pos_x=1.0, crop_pos_y=1.0)
    np.testing.assert_array_equal(found, whole[-1:, -1:])
