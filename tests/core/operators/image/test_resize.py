"""`resize`: geometry, arguments, layouts; values are compared with DALI's in tests/parity."""

from __future__ import annotations

import math

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from headrace import Pipeline, fn, types
from headrace.errors import ArgumentValueError, DataTypeError, UsageError
from headrace.operators.support.resize.request import MODES, planned_axes
from tests.support.run_operator import run_operator

NEAREST, TRIANGULAR = np.array([0]), np.array([1])


def columns(*rows):
    return np.ascontiguousarray(np.array(rows, np.float64).T)


def geometry(in_size, size, mode="default", max_size=None, roi=None, subpixel=True):
    """(in_size, out_size, start, end) of each axis of an image."""
    axes = planned_axes(
        np.array([in_size]).T,
        columns(size),
        (NEAREST, TRIANGULAR),
        *([] if roi is None else [tuple(columns(corner) for corner in roi)]),
        mode=MODES.index(mode),
        max_size=np.zeros(len(in_size)) if max_size is None else np.array(max_size),
        subpixel=subpixel,
    )
    return [tuple(axis)[:4] for axis in axes[:, 0].tolist()]


def extents(in_size, size, *args, **kwargs):
    return [out for _, out, _, _ in geometry(in_size, size, *args, **kwargs)]


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
    (axis,) = geometry((100,), (33.5,))
    assert axis == pytest.approx((100, 34, -0.746269, 100.746269))
    (axis,) = geometry((100,), (33.5,), subpixel=False)
    assert axis == (100, 34, 0, 100)


def test_flips_cancel():
    assert geometry((9,), (-5.0,), roi=((9.0,), (0.0,))) == geometry((9,), (5.0,))
    assert geometry((9,), (5.0,), roi=((7.0,), (1.0,))) == [(9, 5, 7, 1)]


def test_thin_regions_are_a_thousandth_of_a_pixel():
    ((_, _, start, end),) = geometry((20,), (10.0,), roi=((5.0,), (5.0004,)))
    assert (start, end) == pytest.approx((4.9997, 5.0007), abs=1e-6)


def test_samples_together_are_what_they_are_alone():
    sizes, shapes = [(7.5, 0.0), (0.0, -90.0), (30.0, 40.0)], [(20, 30), (300, 17), (8, 90)]
    starts, ends = [(0.0, 0.0), (9.0, 20.0), (3.5, 3.5)], [(20.0, 30.0), (1.0, 2.0), (7.0, 3.5)]
    for mode in MODES:
        together = planned_axes(
            np.array(shapes).T.copy(),
            columns(*sizes),
            (NEAREST, np.array([1, 2, 3])),
            (columns(*starts), columns(*ends)),
            MODES.index(mode),
            np.array([25.0, 0.0]),
        )
        for k, (shape, size) in enumerate(zip(shapes, sizes, strict=True)):
            alone = geometry(shape, size, mode, (25.0, 0.0), (starts[k], ends[k]))
            assert [tuple(axis)[:4] for axis in together[:, k].tolist()] == alone
            for axis in together[:, k].tolist():
                _, out, start, end, kind, begin, length, step = axis
                assert kind == (0 if np.float32(abs(end - start)) > out else k + 1)
                assert (begin, length, step) == (0, out, 1)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 1e300])
@pytest.mark.parametrize("mode", ["default", "not_larger"])
def test_sizes_that_are_no_sizes(value, mode):
    data = image(5, 5, 1)
    for match, kwargs in (
        ("the requested size", {"size": (1.0, value)}),
        ("max_size", {"size": (1.0, 1.0), "max_size": (value, 1.0)}),
        ("roi_start", {"size": (1.0, 1.0), "roi_start": (0.0, value), "roi_end": (1.0, 1.0)}),
        ("roi_end", {"size": (1.0, 1.0), "roi_start": (0.0, 0.0), "roi_end": (value, 1.0)}),
    ):
        with pytest.raises(ArgumentValueError, match=rf"{match}.* must be a finite.* got "):
            run_operator("resize", data, layout="HWC", mode=mode, **kwargs)
    with pytest.raises(ArgumentValueError, match=r"would be 2e\+09 pixels.*max_size"):
        geometry((5, 5), (1e9, 2e9), mode="stretch")
    with pytest.raises(ArgumentValueError, match="max_size"):
        geometry((1, 5), (1e9, 2e9), mode)
    with pytest.raises(ArgumentValueError, match="the region of the source must be a finite"):
        geometry((5,), (0.1,), roi=((-3e38,), (3e38,)))


@given(
    st.lists(st.integers(1, 3000), min_size=2, max_size=3),
    st.data(),
    st.sampled_from(["default", "stretch", "not_larger", "not_smaller"]),
)
def test_geometry_keeps_its_promises(in_size, data, mode):
    number = st.floats(1e-3, 3000) | st.floats(-3000, -1e-3)
    size = tuple(data.draw(st.one_of(st.just(0.0), number)) for _ in in_size)
    axes = geometry(in_size, size, mode, tuple(4000.0 for _ in in_size))
    for (found, out, start, end), extent, wanted in zip(axes, in_size, size, strict=True):
        assert found == extent
        assert 1 <= out <= 4000
        if mode == "stretch" and wanted:
            assert abs(out - max(abs(wanted), 1)) <= 0.5001
        assert start < end if wanted >= 0 else start > end


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
        ({"size": 5, "resize_x": 5}, UsageError, "`size` and `resize_x`"),
        ({"resize_shorter": 5, "mode": "default"}, UsageError, "exclude"),
        ({"size": 5, "roi_end": (1, 1)}, UsageError, "roi_start"),
        ({"size": (5, 6, 7)}, ArgumentValueError, "2 axes"),
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


@pytest.mark.parametrize(
    ("values", "arguments", "match"),
    [
        ([5.0, 6.0, math.nan], lambda v: {"resize_x": v}, "finite number of pixels, got nan"),
        ([5.0, 6.0, 1e10], lambda v: {"resize_x": v, "mode": "stretch"}, r"would be 1e\+10 pixels"),
        ([0, 1, 99], lambda v: {"size": 4, "min_filter": v}, "min_filter.*99"),
        ([[5.0], [5.0, 6.0], [5.0, 6.0, 7.0]], lambda v: {"size": v}, "2 axes.*got 3"),
    ],
)
def test_the_sample_that_is_wrong_is_named(values, arguments, match):
    pipe = Pipeline(batch_size=3, num_threads=1, device_id=None)
    with pipe:
        data = fn.external_source(lambda: [image(8, 9, 3)] * 3, layout="HWC")
        kind = np.int32 if "min_filter" in arguments(0) else np.float32
        given_values = fn.external_source(lambda: [np.array(v, kind) for v in values])
        pipe.set_outputs(fn.resize(data, **arguments(given_values)))
    with pytest.raises(ArgumentValueError, match=rf"(?s)sample 2.*{match}|{match}.*sample 2"):
        pipe.run()


def test_lists_of_different_lengths_by_sample():
    sizes = [np.array([5], np.float32), np.array([5, 6], np.float32)]
    pipe = Pipeline(batch_size=2, num_threads=1, device_id=None)
    with pipe:
        data = fn.external_source(lambda: [image(8, 9, 3)] * 2, layout="HWC")
        pipe.set_outputs(fn.resize(data, size=fn.external_source(lambda: sizes)))
    (out,) = pipe.run()
    assert [out.at(k).shape for k in range(2)] == [(5, 5, 3), (5, 6, 3)]
