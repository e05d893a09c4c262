"""Fusion of resizing with what comes before and after: the same bytes, and no needless pixel."""

from __future__ import annotations

from types import SimpleNamespace

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from headrace import types
from headrace.operators.support.lazy_image import LazyImage
from headrace.operators.support.registry import find
from headrace.operators.support.resize.resized_image import ResizedImage
from headrace.operators.support.schema import Spec
from tests.support.run_operator import PlainContext, call


def pixels(image):
    """All of an image, lazy or not."""
    return image if isinstance(image, np.ndarray) else image.region(0, 0, *image.shape[:2])


class Pixels(LazyImage):
    """A lazy image that remembers what it was asked for."""

    def __init__(self, array):
        self.array = array
        self.shape = array.shape
        self.dtype = array.dtype
        self.asked = []

    def region(self, y0, x0, y1, x1, empty=None):
        assert 0 <= y0 <= y1 <= self.shape[0]
        assert 0 <= x0 <= x1 <= self.shape[1]
        self.asked.append((y0, x0, y1, x1))
        return self.array[y0:y1, x0:x1]


def make(name, spec, **arguments):
    schema = find(name)
    args = {a.name: a.default for a in schema.args.values()}
    args |= {k: schema.args[k].type.constant(v) for k, v in arguments.items()}
    op = schema.cls(args)
    return op, PlainContext(SimpleNamespace(**args)), op.infer(spec)


def run(made, data, lazy=False):
    """The output of what `make` returned, planned and computed, or lazy."""
    op, context, specs = made
    return call(op, specs, context, data, lazy=lazy)


def picture(height, width, dtype=np.uint8):
    rng = np.random.default_rng(height)
    return rng.integers(0, 256, (height, width, 3)).astype(dtype)


FLOAT, UINT8 = types.DALIDataType.FLOAT, types.DALIDataType.UINT8


@st.composite
def resizers(draw):
    """Name and arguments of an operator that resizes."""
    size = draw(st.tuples(st.integers(1, 40), st.integers(1, 40)))
    common = {
        "size": size,
        "interp_type": draw(st.sampled_from(list(types.DALIInterpType)[:6])),
        "antialias": draw(st.booleans()),
        "dtype": draw(st.sampled_from([None, FLOAT])),
    }
    if common["dtype"] is None:
        del common["dtype"]
    if draw(st.booleans()):
        return "random_resized_crop", common
    corner = st.tuples(st.floats(-0.2, 1.2), st.floats(-0.2, 1.2))
    if draw(st.booleans()):
        common |= {"roi_start": draw(corner), "roi_end": draw(corner), "roi_relative": True}
    return "resize", common


@given(
    shape=st.tuples(st.integers(1, 60), st.integers(1, 60)),
    dtype=st.sampled_from([np.uint8, np.float32]),
    resizer=resizers(),
    lazily=st.booleans(),
    layout=st.sampled_from(["CHW", "HWC"]),
    out=st.sampled_from([FLOAT, types.DALIDataType.FLOAT16, UINT8]),
    fraction=st.tuples(st.floats(0, 1.3), st.floats(0, 1.3)),
    position=st.tuples(st.floats(0, 1), st.floats(0, 1)),
    mirror=st.booleans(),
    pad_output=st.booleans(),
)
def test_fused_equals_unfused(
    shape, dtype, resizer, lazily, layout, out, fraction, position, mirror, pad_output
):
    image = picture(*shape, dtype)
    name, arguments = resizer
    spec = Spec(FLOAT if dtype == np.float32 else UINT8, 3, "HWC")
    resize = make(name, spec, **arguments)
    height, width = arguments["size"]
    normalize = make(
        "crop_mirror_normalize",
        resize[2],
        crop=(max(1, int(height * fraction[0])), max(1, int(width * fraction[1]))),
        crop_pos_y=position[0],
        crop_pos_x=position[1],
        mirror=int(mirror),
        mean=(90, 100.5, 110),
        std=(1.5, 60, 80.25),
        dtype=out,
        output_layout=layout,
        pad_output=pad_output,
        out_of_bounds_policy="pad",
        fill_values=3.25,
    )
    want = run(normalize, run(resize, image))
    got = run(normalize, run(resize, Pixels(image) if lazily else image, lazy=True))
    assert got.dtype == want.dtype
    np.testing.assert_array_equal(got.view(f"u{got.itemsize}"), want.view(f"u{want.itemsize}"))


@given(
    shape=st.tuples(st.integers(1, 60), st.integers(1, 60)),
    resizer=resizers(),
    corners=st.tuples(*[st.floats(0, 1)] * 4),
)
def test_regions_equal_parts_of_the_whole(shape, resizer, corners):
    name, arguments = resizer
    resize = make(name, Spec(UINT8, 3, "HWC"), **arguments)
    image = picture(*shape)
    whole = run(resize, image)
    lazily = run(resize, Pixels(image), lazy=True)
    height, width, _ = lazily.shape
    y0, y1 = sorted(int(v * height) for v in corners[:2])
    x0, x1 = sorted(int(v * width) for v in corners[2:])
    assert lazily.dtype == whole.dtype
    np.testing.assert_array_equal(lazily.region(y0, x0, y1, x1), whole[y0:y1, x0:x1])
    np.testing.assert_array_equal(pixels(lazily), whole)


def test_only_what_filters_cover_is_asked_for():
    source = Pixels(picture(100, 200))
    resize = make("resize", Spec(UINT8, 3, "HWC"), size=(50, 100))
    lazily = run(resize, source, lazy=True)
    assert isinstance(lazily, ResizedImage)
    assert source.asked == []
    lazily.region(10, 20, 20, 30)
    # Triangles as wide as four pixels: one and a half beyond the window on either side.
    assert source.asked == [(19, 39, 41, 61)]


def test_nothing_is_asked_for_an_empty_region():
    source = Pixels(picture(10, 20))
    resize = make("resize", Spec(UINT8, 3, "HWC"), size=(5, 10))
    assert run(resize, source, lazy=True).region(3, 3, 3, 8).shape == (0, 5, 3)
    assert source.asked == []


def test_a_resize_to_the_same_size_hands_on_its_input():
    source = Pixels(picture(10, 20))
    resize = make("resize", Spec(UINT8, 3, "HWC"), size=(10, 20))
    assert run(resize, source, lazy=True) is source


@pytest.mark.parametrize("name", ["resize", "random_resized_crop"])
def test_resizing_what_is_being_resized(name):
    image = picture(50, 60)
    first = make("resize", Spec(UINT8, 3, "HWC"), size=(40, 45))
    second = make(name, first[2], size=(17, 20))
    want = run(second, run(first, image))
    lazily = run(first, image, lazy=True)
    np.testing.assert_array_equal(run(second, lazily), want)
    np.testing.assert_array_equal(pixels(run(second, lazily, lazy=True)), want)
