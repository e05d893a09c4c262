"""`crop_mirror_normalize`; values are compared with DALI's in tests/parity."""

from __future__ import annotations

import numpy as np
import pytest

from headrace import types
from headrace.errors import ArgumentChoiceError, ArgumentValueError, LayoutError, OutOfRangeError
from tests.support.run_operator import run_operator

NAME = "crop_mirror_normalize"


def picture(*shape, dtype=np.uint8):
    return np.random.default_rng(0).integers(0, 200, shape).astype(dtype)


def test_by_the_formula():
    data = picture(20, 30, 3)
    mean, std = np.float32([10, 20, 30]), np.float32([2, 4, 8])
    out = run_operator(
        NAME, data, layout="HWC", mean=mean.tolist(), std=std.tolist(), scale=3.0, shift=0.5
    )
    assert out.shape == (3, 20, 30)
    want = ((data - mean) / std * 3 + 0.5).transpose(2, 0, 1)
    np.testing.assert_allclose(out, want, rtol=1e-6, atol=1e-5)


@pytest.mark.parametrize("layout", ["CHW", "HWC"])
def test_window_and_mirror(layout):
    data = picture(20, 30, 3)
    out = run_operator(
        NAME, data, layout="HWC", crop=(18, 17), crop_pos_x=1, mirror=1, output_layout=layout
    )
    want = data[1:19, 13:30][:, ::-1]
    np.testing.assert_array_equal(out, want if layout == "HWC" else want.transpose(2, 0, 1))


def test_arguments_by_sample():
    data = picture(20, 30, 3)
    out = run_operator(
        NAME,
        data,
        layout="HWC",
        mirror=np.array(1, np.int32),
        mean=np.array([1, 2, 3], np.float32),
        std=np.array(2, np.float32),
        crop=np.array([4, 5], np.float32),
    )
    # The window would start at column 12.5.
    want = (data[8:12, 13:18][:, ::-1] - np.float32([1, 2, 3])) / 2
    np.testing.assert_array_equal(out, want.transpose(2, 0, 1))


@pytest.mark.parametrize("mirror", [0, 1])
@pytest.mark.parametrize("layout", ["CHW", "HWC"])
@pytest.mark.parametrize("pad_output", [False, True])
def test_windows_that_leave_the_image(mirror, layout, pad_output):
    data = picture(10, 12, 3)
    fill = [1.5, 2.5, 3.5, 4.5][: 4 if pad_output else 3]
    out = run_operator(
        NAME,
        data,
        layout="HWC",
        crop=(14, 8),
        crop_pos_y=0.25,
        out_of_bounds_policy="pad",
        fill_values=fill,
        pad_output=pad_output,
        mirror=mirror,
        output_layout=layout,
    )
    want = np.empty((14, 8, len(fill)), np.float32)
    want[...] = fill
    want[1:11, :, :3] = data[:, 2:10][:, :: -1 if mirror else 1]
    np.testing.assert_array_equal(out, want if layout == "HWC" else want.transpose(2, 0, 1))


def test_windows_that_are_outside_of_the_image():
    # All of what is left of the image's width, when it has none.
    out = run_operator(
        NAME,
        np.empty((4, 0, 3), np.uint8),
        layout="HWC",
        crop=(2, 6),
        out_of_bounds_policy="constant",
        fill_values=2.0,
    )
    np.testing.assert_array_equal(out, np.full((3, 2, 6), 2, np.float32))


@pytest.mark.parametrize(
    ("dtype", "want"), [(types.UINT8, [255, 0, 7]), (types.INT8, [127, -128, 7])]
)
def test_fill_of_integers_is_clamped_and_loses_its_fraction(dtype, want):
    out = run_operator(
        NAME,
        np.empty((0, 0, 3), np.uint8),
        layout="HWC",
        crop=(1, 1),
        out_of_bounds_policy="pad",
        fill_values=[300.5, -200.0, 7.9],
        dtype=dtype,
    )
    assert out.ravel().tolist() == want


def test_trimming():
    data = picture(10, 12, 3)
    out = run_operator(NAME, data, layout="HWC", crop=(20, 4), out_of_bounds_policy="trim_to_shape")
    np.testing.assert_array_equal(out, data[:, 4:8].transpose(2, 0, 1))


def test_strided_inputs():
    data = picture(40, 60, 3)[::2, ::-2]
    out = run_operator(NAME, data, layout="HWC")
    np.testing.assert_array_equal(out, data.transpose(2, 0, 1))


@pytest.mark.parametrize(
    ("kwargs", "error", "match"),
    [
        ({"mean": (1, 2)}, ArgumentValueError, "3 channels"),
        ({"mean": (1, 2, 3), "std": (1, 2)}, ArgumentValueError, "`mean` has 3 values and `std` 2"),
        ({"mean": ()}, ArgumentValueError, "`mean` has 0"),
        ({"dtype": types.INT32}, ArgumentChoiceError, "INT32"),
        ({"output_layout": "CHWD"}, LayoutError, "CHWD"),
        ({"crop": (9, 5)}, OutOfRangeError, "out_of_bounds_policy"),
        (
            {"fill_values": (1, 2), "out_of_bounds_policy": "pad"},
            ArgumentValueError,
            "`fill_values` has 2 values",
        ),
    ],
)
def test_wrong_arguments(kwargs, error, match):
    with pytest.raises(error, match=match):
        run_operator(NAME, picture(8, 9, 3), layout="HWC", **kwargs)


def test_wrong_arguments_by_sample():
    with pytest.raises(ArgumentValueError, match="3 channels"):
        run_operator(NAME, picture(8, 9, 3), layout="HWC", mean=np.ones(2, np.float32))
