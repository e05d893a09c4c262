"""`resize`: geometry, arguments, layouts; values are compared with DALI's in tests/parity."""

from __future__ import annotations

import math

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from penstock import types
from penstock.errors import ArgumentValueError, DataTypeError, UsageError
from penstock.operators.image.resize_geometry import resize_geometry
from tests.support.run_operator import run_operator


def extents(in_size, size, *args, **kwargs):
    return [a.out_size for a in resize_geometry(in_size, size, *args, **kwargs)]


def image(*shape, dtype=np.uint8):
    return (np.arange(math.prod(shape)) % 251).reshape(shape).astype(dtype)


@pytest.mark.parametrize(
    ("size", "mode", "max_size", "want"),
    [
        ((50.0, 30.0), "default", None, [50, 30]),
        ((50.0, 0.0), "default", None, [50, 100]),
        ((0.0, 50.0), "stretch", None, [100, 50]),
        ((50.0, 50.0), "not_larger", None, [25, 50]),
        ((50.0, 50.0), "not_smaller", None, [50, 100]),
        ((50.0, 50.0), "not_smaller", (0.0, 80.0), [40, 80]),
        ((-50.0, 300.0), "default", (40.0, 70.0), [40, 70]),
        ((0.0, 0.0), "default", None, [100, 200]),
        ((0.0, 0.0), "not_larger", (10.0, 10.0), [100, 200]),
        ((0.1, 0.0), "stretch", None, [1, 200]),
        ((49.5, 30.49), "default", None, [50, 30]),
    ],
)
def test_output_extents(size, mode, max_size, want):
    assert extents((100, 200), size, mode, max_size) == want


def test_a_volume_takes_the_mean_scale_of_the_axes_that_are_given():
    # The geometric mean of 1/2 and 2 is 1.
    assert extents((10, 20, 30), (5.0, 40.0, 0.0)) == [5, 40, 30]


def test_an_empty_axis_stays_empty():
    assert extents((0, 20), (5.0, 6.0)) == [0, 6]


def test_the_region_follows_the_rounding_of_the_size():
    (axis,) = resize_geometry((100,), (33.5,))
    assert axis.out_size == 34
    assert (axis.start, axis.end) == pytest.approx((-0.746269, 100.746269))
    (axis,) = resize_geometry((100,), (33.5,), subpixel_scale=False)
    assert axis == (100, 34, 0, 100)


def test_flips_cancel():
    assert resize_geometry((9,), (-5.0,), roi=((9.0,), (0.0,))) == resize_geometry((9,), (5.0,))
    (axis,) = resize_geometry((9,), (5.0,), roi=((7.0,), (1.0,)))
    assert (axis.start, axis.end) == (7, 1)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 1e300])
@pytest.mark.parametrize("mode", ["default", "not_larger"])
def test_sizes_that_are_no_sizes(value, mode):
    for kwargs in (
        {"size": (value, 1.0)},
        {"size": (1.0, 1.0), "max_size": (value, 1.0)},
        {"size": (1.0, 1.0), "roi": ((0.0, value), (1.0, 1.0))},
    ):
        with pytest.raises(ArgumentValueError):
            resize_geometry((5, 5), mode=mode, **kwargs)
    with pytest.raises(ArgumentValueError, match="max_size"):
        resize_geometry((1, 5), (1e9, 2e9), mode)


@given(
    st.lists(st.integers(1, 3000), min_size=2, max_size=3),
    st.data(),
    st.sampled_from(["default", "stretch", "not_larger", "not_smaller"]),
)
def test_geometry_keeps_its_promises(in_size, data, mode):
    number = st.floats(1e-3, 3000) | st.floats(-3000, -1e-3)
    size = tuple(data.draw(st.one_of(st.just(0.0), number)) for _ in in_size)
    axes = resize_geometry(tuple(in_size), size, mode, tuple(4000.0 for _ in in_size))
    for axis, extent, wanted in zip(axes, in_size, size, strict=True):
        assert axis.in_size == extent
        assert 1 <= axis.out_size <= 4000
        if mode == "stretch" and wanted:
            assert abs(axis.out_size - max(abs(wanted), 1)) <= 0.5001
        if wanted >= 0:
            assert axis.start < axis.end
        else:
            assert axis.start > axis.end


def test_sizes_by_sample():
    size = np.array([4, 6], np.float32)
    out = run_operator("resize", image(8, 9, 3), layout="HWC", size=size)
    assert out.shape == (4, 6, 3)
    out = run_operator("resize", image(8, 9, 3), layout="HWC", resize_x=np.array(3, np.float32))
    assert out.shape == (3, 3, 3)
    out = run_operator(
        "resize",
        image(8, 9, 3),
        layout="HWC",
        size=(4, 4),
        interp_type=np.array(types.INTERP_NN, np.int32),
    )
    np.testing.assert_array_equal(out[:, 0], image(8, 9, 3)[1::2, 1])


@pytest.mark.parametrize(
    ("layout", "shape", "want"),
    [
        ("HWC", (8, 9, 3), (4, 5, 3)),
        ("CHW", (3, 8, 9), (3, 4, 5)),
        ("FHWC", (2, 8, 9, 3), (2, 4, 5, 3)),
        ("CFHW", (3, 2, 8, 9), (3, 2, 4, 5)),
    ],
)
def test_layouts(layout, shape, want):
    data = image(*shape)
    out, attributes = run_operator("resize", data, layout=layout, size=(4, 5), save_attrs=True)
    assert out.shape == want
    assert attributes.dtype == np.int32
    assert attributes.tolist() == [8, 9]
    # Every frame, every plane by itself gives the same.
    order = [layout.index(axis) for axis in "FHWC" if axis in layout]
    frames, frames_out = data.transpose(order), out.transpose(order)
    if "F" not in layout:
        frames, frames_out = frames[None], frames_out[None]
    for frame, frame_out in zip(frames, frames_out, strict=True):
        alone = run_operator("resize", frame, layout="HWC", size=(4, 5))
        np.testing.assert_array_equal(frame_out, alone)


def test_a_volume_of_equal_slices():
    slice_ = image(8, 9, 3, dtype=np.float32)
    volume = np.stack([slice_] * 5)
    out = run_operator("resize", volume, layout="DHWC", size=(7, 4, 5))
    want = run_operator("resize", slice_, layout="HWC", size=(4, 5))
    np.testing.assert_allclose(out, np.stack([want] * 7), rtol=1e-5)
    planar = np.ascontiguousarray(volume.transpose(3, 0, 1, 2))
    np.testing.assert_array_equal(
        run_operator("resize", planar, layout="CDHW", size=(7, 4, 5)), out.transpose(3, 0, 1, 2)
    )


def test_the_same_size_is_no_work():
    data = image(8, 9, 3)
    assert run_operator("resize", data, layout="HWC", size=(8, 9)) is data
    floats = run_operator("resize", data, layout="HWC", size=(8, 9), dtype=types.FLOAT)
    np.testing.assert_array_equal(floats, data)
    gaussian = {"interp_type": types.INTERP_GAUSSIAN}
    assert run_operator("resize", data, layout="HWC", size=(8, 9), **gaussian) is not data


def test_outputs_of_other_types_than_the_input():
    out = run_operator("resize", image(8, 9, 1), layout="HWC", size=(5, 5), dtype=types.FLOAT)
    assert out.dtype == np.float32
    with pytest.raises(DataTypeError, match="cast"):
        run_operator("resize", image(8, 9, 1), layout="HWC", size=5, dtype=types.UINT16)


@pytest.mark.parametrize(
    ("kwargs", "error", "match"),
    [
        ({}, UsageError, "exactly one way"),
        ({"size": 5, "resize_x": 5}, UsageError, "size, separate"),
        ({"resize_shorter": 5, "mode": "default"}, UsageError, "exclude"),
        ({"size": 5, "mode": "bigger"}, ArgumentValueError, "bigger"),
        ({"size": 5, "roi_end": (1, 1)}, UsageError, "roi_start"),
        ({"size": (5, 6, 7)}, ArgumentValueError, "2 spatial axes"),
        ({"size": 5, "max_size": (5, 6, 7)}, ArgumentValueError, "max_size"),
        ({"size": 5, "roi_start": (1,) * 3, "roi_end": (1, 1)}, ArgumentValueError, "roi_start"),
    ],
)
def test_wrong_arguments(kwargs, error, match):
    with pytest.raises(error, match=match):
        run_operator("resize", image(8, 9, 3), layout="HWC", **kwargs)


def test_wrong_arguments_by_sample():
    with pytest.raises(ArgumentValueError, match="`size` must have one value"):
        run_operator("resize", image(8, 9, 3), layout="HWC", size=np.ones(3, np.float32))
    with pytest.raises(ArgumentValueError, match="finite"):
        run_operator("resize", image(8, 9, 3), layout="HWC", resize_y=np.array(np.nan, np.float32))
