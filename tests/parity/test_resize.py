"""`resize` against DALI: sizes, modes, regions, filters, types and layouts."""

from __future__ import annotations

import numpy as np
import pytest

from headrace import types
from tests.parity.support import assert_both_raise, assert_parity, run_graph

FILTERS = [f for f in types.DALIInterpType if f.name.startswith("INTERP")]
SHAPES = [(40, 57, 3), (61, 33, 3), (25, 80, 3), (7, 5, 3), (1, 1, 3), (90, 64, 3)]


def _images(shapes=SHAPES, dtype=np.uint8, seed=0):
    rng = np.random.default_rng(seed)
    if np.dtype(dtype).kind == "f":
        return [rng.uniform(-2, 3, s).astype(dtype) for s in shapes]
    info = np.iinfo(dtype)
    return [rng.integers(info.min, info.max, s, dtype, endpoint=True) for s in shapes]


def _resize(**kwargs):
    return lambda lib, images: lib.fn.resize(images, **kwargs)


@pytest.mark.sweep
@pytest.mark.parametrize("antialias", [True, False])
@pytest.mark.parametrize("filter_", FILTERS)
def test_filters(filter_, antialias):
    for size in ([23, 29], [101, 47], [19, 131]):
        for dtype in (np.float32, np.uint8):
            assert_parity(
                _resize(size=size, interp_type=filter_, antialias=antialias),
                _images(dtype=dtype),
                layouts="HWC",
            )


@pytest.mark.sweep
@pytest.mark.parametrize(
    "sizes",
    [
        {"size": 31},
        {"size": [20, 0]},
        {"size": [0, 33]},
        {"size": [-20, 31]},
        {"size": [20, -31.5]},
        {"size": [0, 0]},
        {"size": [0.2, 7.3]},
        {"size": [33, 20], "mode": "not_larger"},
        {"size": [33, 20], "mode": "not_smaller"},
        {"size": [33, -20], "mode": "not_smaller"},
        {"size": [0, 20], "mode": "not_smaller"},
        {"size": [33, 0], "mode": "stretch"},
        {"size": [90, 20], "max_size": [40, 15]},
        {"size": [90, 50], "max_size": 42, "mode": "not_smaller"},
        {"resize_x": 31},
        {"resize_y": 31.25},
        {"resize_x": 31, "resize_y": -22},
        {"resize_x": 31, "resize_z": 22},
        {"resize_y": 17, "mode": "stretch"},
        {"resize_x": 300, "max_size": 50},
        {"resize_x": -300, "max_size": [50, 44]},
        {"resize_shorter": 29},
        {"resize_shorter": 29.6, "max_size": 51},
        {"resize_shorter": -29},
        {"resize_longer": 29},
        {"resize_longer": 99.9, "max_size": [80, 120]},
    ],
    ids=str,
)
@pytest.mark.parametrize("subpixel_scale", [True, False])
def test_sizes(sizes, subpixel_scale):
    assert_parity(
        _resize(**sizes, subpixel_scale=subpixel_scale),
        _images(dtype=np.float32),
        layouts="HWC",
    )


@pytest.mark.sweep
@pytest.mark.parametrize(
    "roi",
    [
        {"roi_start": [3, 2], "roi_end": [23.5, 30.25]},
        {"roi_start": [23.5, 2], "roi_end": [3, 30.25]},
        {"roi_start": [23.5, 30.25], "roi_end": [3, 2]},
        {"roi_start": [-10, -3.5], "roi_end": [70, 90]},
        {"roi_start": 2, "roi_end": 21},
        {"roi_start": [0.1, 0.9], "roi_end": [0.8, 0.3], "roi_relative": True},
        {"roi_start": [0.5, 0.5], "roi_end": [0.5, 0.5], "roi_relative": True},
        {"roi_start": [-0.25, 0.2], "roi_end": [1.5, 1.25], "roi_relative": True},
    ],
    ids=str,
)
@pytest.mark.parametrize(
    "sizes",
    [
        {"size": [30, -41]},
        {"size": [0, 0]},
        {"resize_shorter": 17.3},
        {"size": [33, 20], "mode": "not_larger", "subpixel_scale": False},
    ],
    ids=str,
)
def test_regions(roi, sizes):
    shapes = [(40, 57, 3), (61, 33, 3), (25, 34, 3), (90, 64, 3)]
    if roi["roi_start"] == [0.5, 0.5] and "size" not in sizes:
        sizes = {"size": 9}
    assert_parity(_resize(**roi, **sizes), _images(shapes, np.float32), layouts="HWC")


@pytest.mark.sweep
@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.uint16, np.float32])
@pytest.mark.parametrize("out", [None, types.FLOAT])
def test_types(dtype, out):
    # Of 16 bit integers a float32 sum has few bits left below the point: more ties go either way.
    differing = 0.04 if np.dtype(dtype).itemsize == 2 else 0.001
    for interp_type in (types.INTERP_LINEAR, types.INTERP_LANCZOS3, types.INTERP_NN):
        assert_parity(
            _resize(size=[33, 44], interp_type=interp_type, dtype=out),
            _images(dtype=dtype),
            layouts="HWC",
            differing=differing,
        )


@pytest.mark.sweep
@pytest.mark.parametrize(
    ("layout", "shapes", "size"),
    [
        ("HWC", [(40, 57, 1), (31, 33, 2), (25, 30, 4), (25, 30, 5), (9, 8, 17)], [23, 31]),
        ("CHW", [(3, 40, 57), (1, 31, 33)], [23, 31]),
        ("FHWC", [(4, 40, 57, 3), (1, 31, 33, 3)], [23, 31]),
        ("FCHW", [(4, 3, 40, 57), (2, 1, 31, 33)], [23, 31]),
        ("CFHW", [(3, 4, 40, 57), (1, 2, 31, 33)], [23, 31]),
        ("DHWC", [(11, 40, 57, 3), (5, 31, 33, 2)], [7, 23, 31]),
        ("DHWC", [(11, 40, 57, 3), (5, 31, 33, 2)], [19, 0, 0]),
        ("FDHWC", [(2, 11, 20, 17, 3)], [7, 23, 11]),
        ("CDHW", [(3, 11, 40, 57), (1, 5, 31, 33)], [13, 23, 31]),
        ("FCDHW", [(2, 3, 11, 20, 17)], [7, 23, 11]),
        ("CFDHW", [(3, 2, 11, 20, 17)], [7, -23, 11]),
    ],
)
@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_layouts(layout, shapes, size, dtype):
    assert_parity(_resize(size=size), _images(shapes, dtype), layouts=layout)
    assert_parity(
        _resize(size=size, interp_type=types.INTERP_NN), _images(shapes, dtype), layouts=layout
    )


def test_volume_arguments():
    volumes = _images([(11, 20, 17, 2), (6, 31, 9, 2)], np.float32)
    for kwargs in (
        {"resize_z": 7},
        {"resize_z": -7, "resize_x": 12.4},
        {"resize_shorter": 8},
        {"resize_longer": 19, "max_size": [5, 20, 20]},
        {"size": [7, 0, 13], "roi_start": [1, 2, 3], "roi_end": [5, 18.5, 8]},
        {"size": 12, "interp_type": types.INTERP_CUBIC},
    ):
        assert_parity(_resize(**kwargs), volumes, layouts="DHWC")


@pytest.mark.parametrize(("ndim", "layout"), [(3, "HWC"), (4, "FHWC"), (5, "FDHWC")])
def test_layout_that_is_not_given(ndim, layout):
    data = _images([(2, 3, 20, 17, 3)[-ndim:]])
    size = [11, 9] if ndim < 5 else [4, 11, 9]
    assert_parity(_resize(size=size), data)


def test_arguments_by_sample():
    sizes = [
        np.array(s, np.float32) for s in ([20, 30], [-7, 41], [0, 9.5], [3, 3], [5, 1], [8, 0])
    ]
    ones = [np.array(v, np.float32) for v in (10, 20.5, 1, 33, -4, 17)]
    starts = [np.array([i, 0.5 * i], np.float32) for i in range(6)]
    ends = [np.array([7 + i, 5 - i], np.float32) for i in range(6)]
    images = _images()
    assert_parity(lambda lib, x, s: lib.fn.resize(x, size=s), images, sizes, layouts=["HWC", ""])
    for name in ("resize_x", "resize_y", "resize_shorter", "resize_longer"):
        assert_parity(
            lambda lib, x, v, name=name: lib.fn.resize(x, **{name: v}),
            _images(dtype=np.float32),
            ones,
            layouts=["HWC", ""],
        )
    assert_parity(
        lambda lib, x, a, b: lib.fn.resize(x, size=13, roi_start=a, roi_end=b),
        _images([(40, 57, 3)] * 6, dtype=np.float32),
        starts,
        ends,
        layouts=["HWC", "", ""],
    )


@pytest.mark.parametrize("filter_", FILTERS)
def test_filters_by_sample(filter_):
    for names in (("interp_type",), ("min_filter", "mag_filter")):

        def graph(lib, images, names=names):
            kind = getattr(lib.types, filter_.name)
            chosen = {name: lib.fn.random.choice([kind, kind]) for name in names}
            return lib.fn.resize(images, size=[21, 74], **chosen)

        assert_parity(graph, _images(dtype=np.float32), layouts="HWC")


def test_filters_by_direction():
    for kwargs in (
        {"min_filter": types.INTERP_CUBIC, "mag_filter": types.INTERP_NN},
        {"interp_type": types.INTERP_NN, "min_filter": types.INTERP_LINEAR},
        {"interp_type": types.INTERP_NN, "mag_filter": types.INTERP_GAUSSIAN},
        {"min_filter": types.INTERP_LANCZOS3},
    ):
        for size in ([20, 90], [90, 20], [40, 57]):
            assert_parity(
                _resize(size=size, **kwargs), _images([(40, 57, 3)], np.float32), layouts="HWC"
            )


@pytest.mark.parametrize("factor", [0.5, 2, 3])
def test_whole_factors(factor):
    # Many sums lie exactly between two integers. DALI sends them to the even one or away from
    # zero, by their place in a vector; here it is always the even one.
    images = _images([(64, 96, 3), (32, 128, 3)])
    for filter_ in (types.INTERP_NN, types.INTERP_LINEAR):
        assert_parity(
            _resize(resize_shorter=32 * factor, interp_type=filter_),
            images,
            layouts="HWC",
            differing=0.02,
        )


def test_nearest_of_whole_factors_is_exact():
    rng = np.random.default_rng(3)
    shapes = [(int(h), int(w), 2) for h, w in rng.integers(2, 90, (40, 2))]
    for kwargs in (
        {"resize_shorter": 12},
        {"resize_longer": 33},
        {"resize_x": 7},
        {"size": [9, 24]},
    ):
        assert_parity(
            _resize(**kwargs, interp_type=types.INTERP_NN),
            _images(shapes),
            layouts="HWC",
            max_levels=0,
        )


@pytest.mark.parametrize("layout", ["HWC", "CHW", "FHWC", "CFHW", "DHWC"])
def test_attributes(layout):
    shape = {"H": 20, "W": 33, "C": 3, "F": 2, "D": 4}
    size = [3, 10, 12] if "D" in layout else [10, 12]
    assert_parity(
        _resize(size=size, save_attrs=True),
        _images([tuple(shape[axis] for axis in layout)] * 2, np.float32),
        layouts=layout,
    )


def test_empty():
    for shape in ((0, 20, 3), (20, 0, 3), (0, 0, 3), (10, 20, 0)):
        for kwargs in ({"size": [5, 6]}, {"resize_x": 5}, {"resize_shorter": 5}, {"size": [5, 0]}):
            assert_parity(_resize(**kwargs), _images([shape]), layouts="HWC")
    assert_parity(_resize(size=[5, 6]), _images([(0, 10, 20, 3)]), layouts="FHWC")


def test_one_pixel_outputs_and_long_thin_images():
    shapes = [(1, 500, 3), (500, 1, 3), (2, 300, 1), (300, 2, 1)]
    for size in ([1, 1], [1, 64], [64, 1], [3, 700]):
        assert_parity(_resize(size=size), _images(shapes, np.float32), layouts="HWC")


def test_wide_rows_are_done_in_pieces():
    images = _images([(9, 5000, 3), (3, 20000, 1), (40, 3000, 4)], np.float32)
    for size in ([20, 3000], [20, 9000], [3, -40]):
        assert_parity(_resize(size=size), images, layouts="HWC")


@pytest.mark.parametrize(
    "kwargs",
    [
        {},
        {"size": [5, 6, 7]},
        {"size": [5, 6], "resize_x": 4},
        {"resize_shorter": 5, "resize_longer": 4},
        {"resize_shorter": 5, "mode": "stretch"},
        {"size": [5, 6], "mode": "larger"},
        {"size": [5, 6], "roi_start": [0, 0]},
        {"size": [5, 6], "roi_end": [1, 1]},
        {"size": [5, 6], "max_size": [1, 2, 3]},
        {"size": [5, 6], "dtype": types.INT16},
        {"size": [5, 6], "dtype": types.FLOAT16},
    ],
    ids=str,
)
def test_wrong_arguments(kwargs):
    assert_both_raise(_resize(**kwargs), _images([(10, 20, 3)]), layouts="HWC")


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.uint32, np.float64, np.float16, np.bool_])
def test_wrong_types(dtype):
    images = [np.zeros((10, 20, 3), dtype)]
    assert_both_raise(_resize(size=[5, 6]), images, layouts="HWC", match="data")


def test_wrong_layout():
    assert_both_raise(_resize(size=5), [np.zeros((10, 20), np.uint8)], layouts="HW", match="HW")


def test_region_outside_of_the_image():
    # DALI reads memory that is not the image's here, or ends the process.
    image = np.arange(12, dtype=np.float32).reshape(3, 4, 1)
    out = run_graph(
        "headrace",
        _resize(size=[2, 3], roi_start=[-9, 6], roi_end=[-5, 9]),
        [image],
        layouts="HWC",
    )
    np.testing.assert_array_equal(out[0][0].samples[0], np.full((2, 3, 1), 3, np.float32))


def test_a_region_of_a_volume_where_one_axis_takes_the_nearest():
    """DALI 2.4 goes wrong where the other axes are interpolated; Headrace does each by itself."""
    volume = np.random.default_rng(0).integers(0, 256, (4, 29, 19, 3), np.uint8)

    def graph(lib, x, **more):
        return lib.fn.resize(
            x,
            size=[6, 18, 5],
            roi_start=[0, 0.1, 0.2],
            roi_end=[1, 0.9, 0.5],
            roi_relative=True,
            mag_filter=lib.types.INTERP_NN,
            min_filter=lib.types.INTERP_TRIANGULAR,
            **more,
        )

    def by_axis(lib, x):
        options = {"roi_relative": True, "antialias": True, "dtype": lib.types.FLOAT}
        options["interp_type"] = lib.types.INTERP_LINEAR
        x = lib.fn.resize(
            x, size=[4, 18, 5], roi_start=[0, 0.1, 0.2], roi_end=[1, 0.9, 0.5], **options
        )
        options["interp_type"] = lib.types.INTERP_NN
        return lib.fn.resize(x, size=[6, 18, 5], roi_start=[0, 0, 0], roi_end=[1, 1, 1], **options)

    run = {name: run_graph(name, graph, [volume], layouts="DHWC") for name in ("dali", "headrace")}
    ((want,),) = run_graph("headrace", by_axis, [volume], layouts="DHWC")
    (dali,), (own,) = run["dali"][0], run["headrace"][0]
    assert np.abs(own.samples[0] - want.samples[0]).max() <= 0.51
    assert np.abs(dali.samples[0] - want.samples[0]).max() > 100
