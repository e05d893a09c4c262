"""`fn.color_space_conversion` against DALI."""

from __future__ import annotations

import numpy as np
import pytest

from tests.parity.support import assert_both_raise, assert_parity, run_graph

CHANNELS = {"RGB": 3, "BGR": 3, "GRAY": 1, "YCbCr": 3}
PAIRS = [(a, b) for a in CHANNELS for b in CHANNELS if a != b]


def convert(given, wanted):
    return lambda lib, x: lib.fn.color_space_conversion(
        x, image_type=getattr(lib.types, given), output_type=getattr(lib.types, wanted)
    )


def exact(graph, *feeds, **options):
    assert_parity(graph, *feeds, max_levels=0, **options)


def noise(*shape):
    return np.random.default_rng(0).integers(0, 256, shape).astype(np.uint8)


def many_colours(channels):
    if channels == 1:
        return np.arange(256, dtype=np.uint8).reshape(16, 16, 1)
    steps = np.arange(256), np.arange(256), np.arange(0, 256, 3)
    grid = np.stack(np.meshgrid(*steps, indexing="ij"), -1)
    return grid.reshape(256, -1, 3).astype(np.uint8)


@pytest.mark.parametrize(("given", "wanted"), PAIRS)
def test_all_conversions(given, wanted):
    exact(convert(given, wanted), [many_colours(CHANNELS[given])], layouts="HWC")


@pytest.mark.parametrize(("given", "wanted"), PAIRS)
def test_ragged_batches(given, wanted):
    images = [noise(k, 45 - 5 * k, CHANNELS[given]) for k in range(1, 9)] + [
        noise(1, 1, CHANNELS[given])
    ]
    exact(convert(given, wanted), images, layouts="HWC")


@pytest.mark.parametrize("layout", ["DHWC", "FHWC", ""])
@pytest.mark.parametrize(
    ("given", "wanted"), [("RGB", "GRAY"), ("GRAY", "YCbCr"), ("YCbCr", "BGR")]
)
def test_four_axes(given, wanted, layout):
    data = [noise(3, 5, 6, CHANNELS[given]), noise(2, 7, 3, CHANNELS[given])]
    exact(convert(given, wanted), data, layouts=layout)


@pytest.mark.parametrize("layout", ["FDHWC", ""])
def test_five_axes(layout):
    exact(convert("RGB", "GRAY"), [noise(2, 3, 5, 6, 3)], layouts=layout)


def test_views_are_read_in_place():
    for given, wanted in (("RGB", "GRAY"), ("GRAY", "RGB"), ("BGR", "YCbCr")):
        exact(
            lambda lib, x, pair=(given, wanted): tuple(
                convert(*pair)(
                    lib, lib.fn.crop(lib.fn.flip(x, horizontal=h, vertical=v), crop=(9, 21))
                )
                for h in (0, 1)
                for v in (0, 1)
            ),
            [noise(30, 37, CHANNELS[given])],
            layouts="HWC",
        )


def test_there_and_back():
    exact(
        lambda lib, x: convert("YCbCr", "RGB")(lib, convert("RGB", "YCbCr")(lib, x)),
        [noise(30, 37, 3)],
        layouts="HWC",
    )


@pytest.mark.parametrize("space", CHANNELS)
def test_nothing_to_convert_is_refused(space):
    data = [noise(3, 4, CHANNELS[space])]
    assert_both_raise(convert(space, space), data, layouts="HWC", match="nothing to convert")


@pytest.mark.parametrize("given", CHANNELS)
def test_other_numbers_of_channels_are_refused(given):
    for channels in {1, 2, 3, 4} - {CHANNELS[given]}:
        wanted = "BGR" if given == "RGB" else "RGB"
        data = [noise(3, 4, channels)]
        assert_both_raise(convert(given, wanted), data, layouts="HWC", match="channels")


def test_any_data_is_refused():
    assert_both_raise(
        convert("ANY_DATA", "RGB"), [noise(3, 4, 3)], layouts="HWC", match="`image_type`"
    )
    assert_both_raise(
        convert("RGB", "ANY_DATA"), [noise(3, 4, 3)], layouts="HWC", match="`output_type`"
    )


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int32", "float16", "float32", "bool"])
def test_other_element_types_are_refused(dtype):
    assert_both_raise(convert("RGB", "GRAY"), [np.ones((3, 4, 3), dtype)], layouts="HWC")


@pytest.mark.parametrize(("layout", "ndim"), [("CHW", 3), ("HW", 2), ("WHC", 3), ("FCHW", 4)])
def test_other_layouts_are_refused(layout, ndim):
    data = [np.ones((3,) * ndim, np.uint8)]
    assert_both_raise(convert("RGB", "GRAY"), data, layouts=layout)


# OpenCV, which DALI calls, refuses them.
def test_empty_images():
    for shape in ((0, 4, 3), (4, 0, 3)):
        ((out,),) = run_graph(
            "headrace", convert("RGB", "GRAY"), [np.ones(shape, np.uint8)], layouts="HWC"
        )
        assert out.samples[0].shape == (*shape[:2], 1)


def test_arguments_that_must_be_given():
    for missing in ("image_type", "output_type"):
        assert_both_raise(
            lambda lib, x, name=missing: lib.fn.color_space_conversion(
                x, **{n: lib.types.RGB for n in ("image_type", "output_type") if n != name}
            ),
            [noise(3, 4, 3)],
            layouts="HWC",
            match=missing,
        )
